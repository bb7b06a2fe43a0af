package page_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tripline/tripline/internal/admin/live"
)

const card = `article[aria-labelledby="consumer-dispatch"]`

// The page as an operator meets it, one step after the other, in one browser.
func TestTheLivePageInABrowser(t *testing.T) {
	t.Parallel()
	b := openBrowser(t)
	api := startBackend(t)
	api.town(t, 60)
	b.open(api.URL)

	step := func(name string, do func(t *testing.T)) {
		t.Helper()
		if t.Failed() {
			return
		}
		t.Run(name, func(t *testing.T) {
			outer := b.t
			b.t = t
			defer func() { b.t = outer }()
			do(t)
			if bad := b.console(); len(bad) > 0 {
				t.Errorf("the console says %q", bad)
			}
		})
	}
	step("loads", func(t *testing.T) { loads(t, b) })
	step("works by keyboard", func(t *testing.T) { worksByKeyboard(t, b) })
	step("a device moves", func(t *testing.T) { aDeviceMoves(t, b) })
	step("triggers can be filtered", func(t *testing.T) { triggersCanBeFiltered(t, b) })
	step("a trip shows within 2 s", func(t *testing.T) { aTripShows(t, b, api) })
	step("actions ask first and then work", func(t *testing.T) { actionsWork(t, b, api) })
	step("half-open says recovering", func(t *testing.T) { halfOpenSaysRecovering(t, b) })
	step("a fence tells who is inside", func(t *testing.T) { aFenceTellsWhoIsInside(t, b) })
	step("a reload shows what happened before", func(t *testing.T) { aReloadShowsWhatHappenedBefore(t, b) })
	step("a fence is drawn and removed", func(t *testing.T) { aFenceIsDrawn(t, b, api) })
	step("a fence is drawn by keyboard", func(t *testing.T) { aFenceIsDrawnByKeyboard(t, b, api) })
	step("a forgotten device leaves", func(t *testing.T) { aForgottenDeviceLeaves(t, b, api) })
	step("GeoJSON is pasted", func(t *testing.T) { geoJSONIsPasted(t, b, api) })
	step("every control has a name", func(t *testing.T) { everyControlHasAName(t, b) })
	step("fits a phone", func(t *testing.T) { fitsAPhone(t, b) })
}

func loads(t *testing.T, b *browser) {
	b.until("the stream is up", func() bool { return b.text("#connection") == "Live" })
	b.until("three cards are shown", func() bool {
		var n int
		b.eval(`return document.querySelectorAll("article.card").length`, &n)
		return n == 3
	})
	b.until("devices and fences are counted", func() bool { return b.text("#count-devices") == "60" && b.text("#count-fences") == "5" })
	if got := b.text(card + " .chip"); got != "Closed" {
		t.Errorf("the card says %q; want Closed", got)
	}
	if got := b.text("#summary"); got != "All 3 consumers healthy" {
		t.Errorf("the summary says %q", got)
	}
	var painted int
	b.until("the map has painted devices", func() bool {
		b.eval(`const c = document.querySelector("canvas.overlay"); if (!c || !c.width) return 0;
			const copy = new OffscreenCanvas(c.width, c.height), g = copy.getContext("2d", {willReadFrequently: true});
			g.drawImage(c, 0, 0);
			const d = g.getImageData(0, 0, c.width, c.height).data;
			let n = 0; for (let i = 3; i < d.length; i += 4) if (d[i] > 0) n++; return n`, &painted)
		return painted > 500
	})
	b.until("a trigger is listed", func() bool { return b.text("#trigger-list li") != "" })
	b.shot("light")
}

// Keys, as WebDriver names them.
const (
	tab, enter, escape, backspace = '\uE004', '\uE007', '\uE00C', '\uE003'
	left, up, right, down         = '\uE012', '\uE013', '\uE014', '\uE015'
)

// focused is the name of what has the focus.
func focused(b *browser) string {
	b.t.Helper()
	var name string
	b.eval(`const e = document.activeElement; return e.getAttribute("aria-label") || e.id || e.innerText`, &name)
	return name
}

// reach tabs on until something of that name has the focus.
func reach(b *browser, name string) {
	b.t.Helper()
	for range 30 {
		if strings.HasPrefix(focused(b), name) {
			return
		}
		b.press(tab)
	}
	b.t.Fatalf("30 tabs don't reach %q; the focus is on %q", name, focused(b))
}

// said is what a screen reader has been told lately.
func said(b *browser) string {
	b.t.Helper()
	var text string
	b.eval(`return document.getElementById("announcer").textContent`, &text)
	return text
}

func worksByKeyboard(t *testing.T, b *browser) {
	reach := func(name string) { t.Helper(); reach(b, name) }
	focused := func() string { return focused(b) }
	reach("Skip the map")
	b.press(enter)
	reach("Actions for dispatch")
	b.press(enter)
	b.until("the menu opens", func() bool { return b.text(card+" .menu-items") != "" })
	b.press(tab)
	if got := focused(); got != "Force open…" {
		t.Errorf("the menu begins with %q", got)
	}
	b.press(enter)
	b.until("the dialog asks", func() bool { return b.text("dialog h2") == "Force dispatch open?" })
	if got := focused(); got != "Cancel" {
		t.Errorf("the dialog begins on %q; want Cancel", got)
	}
	b.press(escape)
	b.until("the dialog is gone", func() bool { return b.text("dialog h2") == "" })
	b.until("the focus is back", func() bool { return focused() == "Actions for dispatch" })
	reach("Actions for billing")
	b.press(enter)
	b.press(escape)
	b.until("Escape closes the menu", func() bool { return b.text(`[aria-labelledby="consumer-billing"] .menu-items`) == "" })
}

func aDeviceMoves(t *testing.T, b *browser) {
	b.write("#find", "van-007")
	b.press('\uE007') // Enter takes the first
	b.until("the device is shown", func() bool { return b.text("#details-title") == "van-007" })
	position := func() string { return b.text("#details-body dd") }
	first := ""
	b.until("its position is known", func() bool { first = position(); return strings.Contains(first, ",") })
	b.until("its position changes", func() bool { p := position(); return p != "" && p != first })
	b.shot("device")
	b.click("#details-close")
	b.click("#zoom-fit")
}

func triggersCanBeFiltered(t *testing.T, b *browser) {
	rows := func() []string {
		var list []string
		b.eval(`return [...document.querySelectorAll("#trigger-list .transition")].map((e) => e.innerText)`, &list)
		return list
	}
	b.until("enters and exits are listed", func() bool {
		r := rows()
		return slices.Contains(r, "enter") && slices.Contains(r, "exit")
	})
	b.eval(`const s = document.getElementById("filter-transition"); s.value = "exit"; s.dispatchEvent(new Event("input"))`, nil)
	b.until("only exits are listed", func() bool {
		r := rows()
		return len(r) > 0 && !slices.ContainsFunc(r, func(v string) bool { return v != "exit" })
	})
	b.write("#filter-text", "nothing has this name")
	b.until("an empty list says why", func() bool { return b.text("#triggers-empty") == "No trigger matches the filters." })
	b.write("#filter-text", " ")
	b.eval(`const s = document.getElementById("filter-transition"); s.value = ""; s.dispatchEvent(new Event("input"))`, nil)
	b.until("the list is back", func() bool { return len(rows()) > 1 })
}

func aTripShows(t *testing.T, b *browser, api *backend) {
	began := time.Now()
	api.trip("dispatch")
	b.until("the card says Open", func() bool { return b.text(card+" .chip") == "Open" })
	took := time.Since(began)
	t.Logf("the trip showed after %v", took.Round(time.Millisecond))
	if took > 2*time.Second {
		t.Errorf("the trip showed after %v; want within 2 s", took)
	}
	sentence := b.text(card + " .sentence")
	for _, want := range []string{"P99 was 812 ms", "kept in the fallback queue", "First probe in"} {
		if !strings.Contains(sentence, want) {
			t.Errorf("the card says %q; want %q in it", sentence, want)
		}
	}
	b.until("the backlog shows", func() bool { return strings.Contains(b.text(card+" .backlog-words"), "1,284 parked") })
	if got := b.text("#summary"); got != "dispatch open" {
		t.Errorf("the summary says %q", got)
	}
	if text := said(b); !strings.Contains(text, "dispatch is open.") {
		t.Errorf("a screen reader hears %q", text)
	}
	b.until("the window counts down", func() bool { return b.text(card+" .sentence") != sentence })
	b.shot("open")
}

// act opens the card's menu, chooses an action, and answers its question.
func act(b *browser, name string, yes bool) {
	b.t.Helper()
	b.click(card + " .menu summary")
	b.click(card + ` .menu button[data-action="` + name + `"]`)
	b.until("the dialog asks", func() bool { return b.text("dialog h2") != "" })
	b.shot("confirm-" + name)
	if yes {
		b.click("dialog .primary")
	} else {
		b.click("dialog .buttons button:first-child")
	}
	b.until("the dialog is gone", func() bool { return b.text("dialog h2") == "" })
}

func actionsWork(t *testing.T, b *browser, api *backend) {
	act(b, "pause", false)
	if did := api.done(); did != "" {
		t.Fatalf("a cancelled action did %s", did)
	}
	for _, name := range []string{"pause", "resume", "redrive", "probe", "open", "probe"} {
		act(b, name, true)
		want := "POST dispatch/" + name
		b.until(want+" was sent", func() bool { return api.did(want) })
		switch name {
		case "pause":
			b.until("the card says paused", func() bool { return strings.Contains(b.text(card+" .sentence"), "paused by an operator") })
		case "probe":
			b.until("the card says half-open", func() bool { return b.text(card+" .chip") == "Half-open" })
		case "open":
			b.until("the card says open", func() bool { return b.text(card+" .chip") == "Open" })
		}
	}
}

func halfOpenSaysRecovering(t *testing.T, b *browser) {
	words := b.text(card)
	if !strings.Contains(words, "Recovering and being tested: 2 of 5 probes in a row were healthy.") {
		t.Errorf("the card says %q", words)
	}
	for _, wrong := range []string{"invalid", "lost", "dropped"} {
		if strings.Contains(strings.ToLower(words), wrong) {
			t.Errorf("the card says %q while it recovers", wrong)
		}
	}
	if got := b.text("#summary"); got != "dispatch recovering" {
		t.Errorf("the summary says %q", got)
	}
	var label string
	b.eval(`return document.querySelector(arguments[0]).getAttribute("aria-label")`, &label, card+" canvas")
	if !strings.Contains(label, "healthy") || !strings.Contains(label, "open") {
		t.Errorf("the timeline is called %q", label)
	}
	b.shot("half-open")
}

func aFenceTellsWhoIsInside(t *testing.T, b *browser) {
	b.write("#find", "old town")
	b.press('\uE015') // arrow down to the first
	b.press('\uE007')
	b.until("the fence is shown", func() bool { return b.text("#details-title") == "Old town" })
	b.until("who is inside is shown", func() bool { return strings.Contains(b.text("#details-body .inside"), "2 devices inside") })
	if strings.Contains(b.text("#details-body"), "Remove") {
		t.Error("a fence of a file can be removed here")
	}
	b.shot("fence")
	b.press('\uE00C') // Escape
	b.until("the panel is closed", func() bool { return b.text("#details-title") == "" })
}

// The server remembers: the page that is loaded anew has seen none of it.
func aReloadShowsWhatHappenedBefore(t *testing.T, b *browser) {
	label := func() (text string) {
		b.eval(`const e = document.querySelector(arguments[0]); return e ? e.getAttribute("aria-label") : ""`, &text, card+" canvas")
		return text
	}
	b.call("POST", "/refresh", nil, nil)
	b.until("the timeline tells of the trips and probes of before", func() bool {
		text := label()
		return strings.Contains(text, "open 2 times") && strings.Contains(text, "tested 2 times; 2 probes, 2 healthy.")
	})
	b.until("the map is back", func() bool { return b.text("#count-fences") == "5" && b.text("#count-devices") == "60" })
	b.shot("reloaded")
}

func aForgottenDeviceLeaves(t *testing.T, b *browser, api *backend) {
	api.hub.Position(live.Position{Device: "ghost", Lat: townLat, Lon: townLon, TS: time.Now().UnixMilli(), Heading: math.NaN()})
	b.until("it is counted", func() bool { return b.text("#count-devices") == "61" })
	b.write("#find", "ghost")
	b.press(enter)
	b.until("it is shown", func() bool { return b.text("#details-title") == "ghost" })
	api.hub.Forget("ghost")
	b.until("it is gone", func() bool { return b.text("#count-devices") == "60" && b.text("#details-title") == "" })
	b.until("that is said", func() bool { return strings.Contains(said(b), "ghost has left the map") })
	b.click("#zoom-fit")
}

// everyControlHasAName asks the browser's own accessibility tree.
func everyControlHasAName(t *testing.T, b *browser) {
	var tree []map[string]string
	b.eval(`return [...document.querySelectorAll("button, input, select, textarea, summary, [role=img], [role=meter], [tabindex='0']")]
		.filter((e) => e.checkVisibility())`, &tree)
	if len(tree) < 20 {
		t.Fatalf("only %d controls", len(tree))
	}
	unnamed := 0
	for _, e := range tree {
		for _, id := range e {
			var name string
			if b.try("GET", "/element/"+id+"/computedlabel", nil, &name) == nil && strings.TrimSpace(name) == "" {
				unnamed++
				var markup string
				b.call("GET", "/element/"+id+"/property/outerHTML", nil, &markup)
				t.Errorf("no name for %.150s", markup)
			}
		}
	}
	var headings []string
	b.eval(`return [...document.querySelectorAll("h1, h2, h3")].filter((e) => e.checkVisibility()).map((e) => e.tagName)`, &headings)
	if len(headings) == 0 || headings[0] != "H1" {
		t.Errorf("the headings are %v", headings)
	}
}

func fitsAPhone(t *testing.T, b *browser) {
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		b.size(1440, 900, false)
		b.until("the page is wide", func() bool { var w int; b.eval("return innerWidth", &w); return w == 1440 })
		b.click("#zoom-fit")
		var cut []string
		b.eval(`return [...document.querySelectorAll(".cards, .card, .bar, .details, .trigger-list")]
			.filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.className + " " + e.innerText.slice(0, 40))`, &cut)
		if len(cut) > 0 {
			t.Errorf("%s: too wide for its place: %q", scheme, cut)
		}
		b.shot("desktop-" + scheme)
		for _, width := range []int{390, 320} {
			b.size(width, 844, true)
			var wide int // innerWidth grows with what is too wide
			b.eval(`return document.documentElement.scrollWidth`, &wide)
			if wide > width {
				t.Errorf("at %d px the page is %d px too wide", width, wide-width)
			}
			b.eval("scrollTo(0, 0)", nil)
			b.shot(fmt.Sprintf("phone-%d-%s", width, scheme))
			b.eval(`document.getElementById("consumers").scrollIntoView()`, nil)
			b.shot(fmt.Sprintf("phone-%d-%s-cards", width, scheme))
		}
	}
}
