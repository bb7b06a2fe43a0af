package page_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

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
