package page_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
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

// mapPoint is a point of the map area, in the window's pixels.
func mapPoint(b *browser, across, down float64) [2]int {
	var box struct{ X, Y, Width, Height float64 }
	b.eval(`return document.getElementById("map").getBoundingClientRect().toJSON()`, &box)
	return [2]int{int(box.X + box.Width*across), int(box.Y + box.Height*down)}
}

func aFenceIsDrawn(t *testing.T, b *browser, api *backend) {
	b.click("#add-fence summary")
	b.click("#add-circle")
	b.until("a hint is shown", func() bool { return strings.Contains(b.text("#draw-hint"), "Click the centre") })
	b.shot("draw")
	b.tap(mapPoint(b, 0.5, 0.5), mapPoint(b, 0.55, 0.5))
	b.until("the form asks for an id", func() bool { return b.text("dialog h2") == "New fence" })
	b.write("#fence-id", "depot-west")
	b.until("it says that the fence exists", func() bool { return strings.Contains(b.text("dialog .notice"), "will be replaced") })
	b.click("dialog .primary")
	b.until("the refusal is shown", func() bool { return strings.Contains(b.text("dialog .error"), "comes from a file") })
	b.console() // the refusal is in the console as well
	b.write("#fence-id", "drawn-circle")
	b.shot("draw-form")
	b.click("dialog .primary")
	b.until("the fence is put", func() bool { return api.fence("drawn-circle") != nil })
	b.until("it is counted", func() bool { return b.text("#count-fences") == "6" })
	f := api.fence("drawn-circle")
	radius, _ := f["properties"].(map[string]any)["radius_m"].(float64)
	if geometry := fmt.Sprint(f["geometry"]); radius < 10 || !strings.Contains(geometry, "Point") {
		t.Errorf("the circle is %v with radius %v", geometry, radius)
	}

	b.tap(mapPoint(b, 0.5, 0.5))
	b.until("a click on it shows it", func() bool {
		return b.text("#details-title") == "drawn-circle" || strings.HasPrefix(b.text("#details-title"), "van-")
	})
	b.write("#find", "drawn-circle")
	b.press('\uE007')
	b.until("it is shown", func() bool { return b.text("#details-title") == "drawn-circle" })
	b.click(`#details button[data-action="remove"]`)
	b.click("dialog .danger")
	b.until("it is gone", func() bool { return api.fence("drawn-circle") == nil && b.text("#count-fences") == "5" })

	b.click("#add-fence summary")
	b.click("#add-polygon")
	b.tap(mapPoint(b, 0.4, 0.4), mapPoint(b, 0.6, 0.4), mapPoint(b, 0.5, 0.6), mapPoint(b, 0.4, 0.4))
	b.until("the form asks for an id", func() bool { return b.text("dialog h2") == "New fence" })
	b.write("#fence-id", "drawn-polygon")
	b.click("dialog .primary")
	b.until("the polygon is put", func() bool { return api.fence("drawn-polygon") != nil })
	data, err := json.Marshal(api.fence("drawn-polygon")["geometry"])
	if err != nil {
		t.Fatal(err)
	}
	var polygon struct {
		Type        string
		Coordinates [][][]float64
	}
	if err := json.Unmarshal(data, &polygon); err != nil || polygon.Type != "Polygon" || len(polygon.Coordinates[0]) != 4 {
		t.Errorf("the polygon is %s (%v); want a closed ring of 4 positions", data, err)
	}
}

// All of it without a pointer, from opening the menu to the fence in force.
func aFenceIsDrawnByKeyboard(t *testing.T, b *browser, api *backend) {
	begin := func(shape string) {
		t.Helper()
		b.eval(`document.querySelector("#find").focus()`, nil)
		reach(b, "Add fence")
		b.press(enter)
		reach(b, "add-"+shape)
		b.press(enter)
		b.until("the drawing has begun", func() bool { return strings.Contains(said(b), "Drawing a "+shape) })
	}
	pan := func(times int, key rune) {
		for range times {
			b.press(key)
		}
	}
	begin("polygon")
	if got := focused(b); !strings.HasPrefix(got, "Map of fences") {
		t.Errorf("the focus is on %q; want the map", got)
	}
	if got := b.text("#draw-hint"); got != "Arrows move, Enter sets the first corner." {
		t.Errorf("the hint is %q", got)
	}
	b.press(enter)
	pan(3, right)
	b.until("it is read out where the crosshair is", func() bool { return strings.Contains(said(b), " m from the last corner.") })
	b.press(enter)
	pan(2, up)
	b.press(enter)
	pan(2, left)
	b.press(enter)
	b.press(backspace)
	b.until("the corner is taken back", func() bool { return strings.Contains(said(b), "Corner 4 taken back.") })
	pan(2, right) // to the third corner again
	b.until("the shape shows on the map", func() bool {
		var pixels int
		b.eval(`let n = 0;
			for (const c of document.querySelectorAll(".ol-layers canvas")) {
				const g = new OffscreenCanvas(c.width, c.height).getContext("2d", {willReadFrequently: true});
				g.drawImage(c, 0, 0);
				const d = g.getImageData(0, 0, c.width, c.height).data; // of the colour of what is chosen
				for (let i = 0; i < d.length; i += 4) if (d[i] === 0xc4 && d[i + 1] === 0x46 && d[i + 2] === 0x0b) n++;
			}
			return n`, &pixels)
		return pixels > 200
	})
	b.shot("draw-keyboard")
	b.press(enter)
	b.until("the form asks for an id", func() bool { return b.text("dialog h2") == "New fence" })
	b.enterText("by-keys")
	b.press(enter)
	b.until("the fence is put", func() bool { return api.fence("by-keys") != nil })
	ring := api.fence("by-keys")["geometry"].(map[string]any)["coordinates"].([]any)[0].([]any)
	if len(ring) != 4 {
		t.Fatalf("the ring is %v; want three corners", ring)
	}
	at := func(i, axis int) float64 { return ring[i].([]any)[axis].(float64) }
	if at(1, 0) <= at(0, 0) || at(1, 1) != at(0, 1) || at(2, 1) <= at(1, 1) || at(2, 0) != at(1, 0) {
		t.Errorf("the ring is %v; want a corner to the east, then one to the north", ring)
	}
	b.until("the dialog is gone", func() bool { return b.text("dialog h2") == "" })
	if got := focused(b); !strings.HasPrefix(got, "Map of fences") {
		t.Errorf("afterwards the focus is on %q; want the map", got)
	}

	begin("circle")
	b.press(enter)
	pan(4, down)
	b.press(enter)
	b.until("the form knows the radius", func() bool {
		var radius float64
		b.eval(`return Number(document.getElementById("fence-radius")?.value ?? 0)`, &radius)
		return radius > 10
	})
	b.press(escape)
	b.until("the dialog is gone", func() bool { return b.text("dialog h2") == "" })

	begin("polygon")
	b.press(enter)
	b.press(escape)
	b.until("Escape ends the drawing", func() bool { return b.text("#draw-hint") == "" && strings.Contains(said(b), "Drawing stopped.") })
	api.remove("by-keys")
	b.until("the page knows", func() bool { return b.text("#count-fences") == "6" }) // the drawn polygon stays
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

func geoJSONIsPasted(t *testing.T, b *browser, api *backend) {
	b.click("#add-fence summary")
	b.click("#add-paste")
	b.write("#fence-geojson", `{"type": "FeatureCollection", "features": [`)
	b.until("it says what is wrong", func() bool { return strings.Contains(b.text("dialog .notice"), "not valid JSON yet") })
	b.write("#fence-geojson", `{"type": "Feature", "id": "pasted", "properties": {"name": "<b>Pasted</b>", "radius_m": 150}, "geometry": {"type": "Point", "coordinates": [`+strconv.FormatFloat(townLon, 'f', 4, 64)+`, 55.67]}}`)
	b.until("it counts the fences", func() bool { return b.text("dialog .notice") == "1 fence." })
	b.shot("paste")
	b.click("dialog .primary")
	b.until("the fence is put", func() bool { return api.fence("pasted") != nil })
	b.until("its name is text, not markup", func() bool {
		if b.text("#details-title") == "<b>Pasted</b>" {
			return true
		}
		b.write("#find", "pasted") // the page may not know it yet
		b.press('\uE007')
		return false
	})
	b.click("#details-close")
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
