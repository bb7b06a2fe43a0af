// The few words of DOM that the page needs. Text is always set as text: what
// devices, fences and errors are called never becomes markup.

type Child = Node | string | null | undefined | false;
type Props = Record<string, string | boolean | ((event: Event) => void)>;

/** h makes an element: "on..." properties are listeners, the rest attributes. */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((c): c is Node | string => c !== null && c !== undefined && c !== false));
  return element;
}

/** setText touches the DOM only for a change, so that nothing is announced or laid out for nothing. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttr(element: Element, name: string, value: string): void {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

export function show(element: HTMLElement, visible: boolean): void {
  if (element.hidden === visible) element.hidden = !visible;
}

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no #${id}`);
  return element as T;
}

/** announce tells a screen reader politely. */
export function announce(text: string): void {
  byId("announcer").append(h("p", {}, text));
  const region = byId("announcer");
  while (region.childElementCount > 5) region.firstElementChild?.remove();
}
