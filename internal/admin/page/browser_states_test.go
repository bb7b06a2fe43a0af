package page_test

import (
	"encoding/base64"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tripline/tripline/internal/admin/live"
	"github.com/tripline/tripline/internal/admin/page"
)

// TestTheLivePagesStates shows the page in states that are not everyday, one
// after the other in one browser, without motion.
func TestTheLivePagesStates(t *testing.T) {
	t.Parallel()
	b := openBrowser(t, "--force-prefers-reduced-motion", "--window-size=1000,700")
	for _, state := range []struct {
		name  string
		shows func(t *testing.T, b *browser)
	}{
		{"the token is asked for once", theTokenIsAskedForOnce},
		{"the page reconnects", thePageReconnects},
		{"the connection is lost", theConnectionIsLost},
		{"a device that is not heard of leaves the map", aDeviceThatIsNotHeardOfLeaves},
		{"the map shows the fences when they come", theFencesCome},
		{"tiles come from the configured host alone", tilesComeFromTheConfiguredHost},
	} {
		t.Run(state.name, func(t *testing.T) {
			b.t = t
			b.open("about:blank")
			b.console() // of the page that was left
			state.shows(t, b)
		})
	}
	b.t = t
}

func theTokenIsAskedForOnce(t *testing.T, b *browser) {
	api := startBackend(t)
	api.setToken("opensesame")
	b.open(api.URL)
	b.until("the page asks for the token", func() bool { return b.text("dialog h2") == "Token needed" })
	b.write("#token", "wrong")
	b.click("dialog .primary")
	b.until("it says that it was wrong", func() bool { return strings.Contains(b.text("dialog .error"), "not accepted") })
	b.shot("token")
	b.write("#token", "opensesame")
	b.click("dialog .primary")
	b.until("the stream is up", func() bool { return b.text("#connection") == "Live" })
	b.until("the cards are there", func() bool { return b.text(card) != "" })
	b.open(api.URL)
	b.until("a reload asks no more", func() bool { return b.text("#connection") == "Live" && b.text(card) != "" })
	if got := b.text("dialog h2"); got != "" {
		t.Errorf("a dialog says %q", got)
	}
}

func thePageReconnects(t *testing.T, b *browser) {
	api := startBackend(t)
	b.open(api.URL)
	b.until("the stream is up", func() bool { return b.text("#connection") == "Live" })
	api.change("billing", func(c *live.Consumer) { c.State, c.Reason = "open", "5 calls in a row failed" })
	api.CloseClientConnections()
	b.until("the page says that it is cut off, or is back already", func() bool { return b.text("#connection") != "" })
	b.until("the stream is up again", func() bool { return api.hub.Watched() && b.text("#connection") == "Live" })
	b.until("what changed is shown", func() bool { return strings.Contains(b.text("#summary"), "billing open") })
}

func theConnectionIsLost(t *testing.T, b *browser) {
	api := startBackend(t)
	api.town(t, 20)
	b.open(api.URL)
	b.until("the page is up", func() bool { return b.text("#summary") == "All 3 consumers healthy" })
	api.CloseClientConnections()
	api.Config.SetKeepAlivesEnabled(false)
	api.Listener.Close()
	b.until("the page says that it has no connection", func() bool { return b.text("#connection") == "No connection; trying again" })
	if got := b.text("#summary"); !strings.HasPrefix(got, "As it was at ") {
		t.Errorf("the summary says %q; want that it is not current", got)
	}
	b.shot("gone")
}

func aDeviceThatIsNotHeardOfLeaves(t *testing.T, b *browser) {
	api := startBackend(t, func(b *backend) { b.live.GoneAfter = 3 * time.Second })
	b.open(api.URL)
	b.until("the stream is up", func() bool { return api.hub.Watched() && b.text("#count-fences") == "5" })
	api.hub.Position(live.Position{Device: "van-1", Lat: townLat, Lon: townLon, TS: time.Now().UnixMilli(), Heading: math.NaN()})
	b.until("it is shown", func() bool { return b.text("#count-devices") == "1" })
	b.until("it has left", func() bool { return b.text("#count-devices") == "0" })
	b.until("the map says what it waits for", func() bool { return strings.Contains(b.text("#map-empty"), "No device was heard of in the last 3 s.") })
	b.shot("empty")
}

// Under load the fences may come late, or not at the first time.
func theFencesCome(t *testing.T, b *browser) {
	scale := func() string { return b.text(".ol-scale-line-inner") }
	for _, moved := range []bool{false, true} {
		api := startBackend(t, func(b *backend) { b.hold = true })
		b.open(api.URL)
		b.until("the world is shown", func() bool { return strings.HasSuffix(scale(), "000 km") })
		b.until("it is said that the fences are missing", func() bool { return strings.Contains(b.text("#toasts"), "The fences could not be loaded") })
		if moved {
			before := scale()
			b.until("the map has moved", func() bool { b.click("#zoom-in"); return scale() != before })
		}
		api.release()
		b.until("the fences come", func() bool { return b.text("#count-fences") == "5" })
		if moved {
			api.hub.Position(live.Position{Device: "van-1", Lat: townLat, Lon: townLon, TS: 1, Heading: math.NaN()})
			b.until("a device comes", func() bool { return b.text("#count-devices") == "1" })
			if got := scale(); !strings.HasSuffix(got, " km") {
				t.Errorf("the operator moved the map, which then moved by itself: its scale is %s", got)
			}
		} else {
			b.until("the map shows them", func() bool { return strings.HasSuffix(scale(), "0 m") })
		}
		b.console() // the refused requests
	}
}

// Tiles are the one thing that is asked elsewhere, and only there.
func tilesComeFromTheConfiguredHost(t *testing.T, b *browser) {
	tile, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==")
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan *http.Request, 1000)
	serve := func() *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- r
			w.Header().Set("Content-Type", "image/png")
			w.Write(tile)
		}))
		t.Cleanup(s.Close)
		return s
	}
	tiles, other := serve(), serve()
	api := startBackend(t, func(b *backend) {
		b.options = page.Options{TileURL: tiles.URL + "/{z}/{x}/{y}.png", TileCredit: "© Somebody"}
	})
	b.open(api.URL)
	select {
	case r := <-asked:
		if r.Host != strings.TrimPrefix(tiles.URL, "http://") || !regexp.MustCompile(`^/\d+/\d+/\d+\.png$`).MatchString(r.URL.Path) || r.Referer() != api.URL+"/" {
			t.Errorf("asked was %s%s for %q; want a tile of %s for %s/", r.Host, r.URL, r.Referer(), tiles.URL, api.URL)
		}
	case <-time.After(patience):
		t.Fatal("no tile was asked for")
	}
	if got := b.text(".credit"); !strings.HasPrefix(got, "© Somebody · Natural Earth") {
		t.Errorf("the credit is %q", got)
	}
	b.shot("tiles")
	if bad := b.console(); len(bad) > 0 {
		t.Errorf("the console says %q", bad)
	}
	var refused string
	b.call("POST", "/execute/async", map[string]any{"script": `const [url, done] = arguments;
		addEventListener("securitypolicyviolation", (e) => done(e.effectiveDirective));
		const i = new Image(); i.onload = () => done("loaded"); i.src = url;`, "args": []any{other.URL + "/1/1/1.png"}}, &refused)
	if refused != "img-src" {
		t.Errorf("an image of another host: %s; want that the policy refuses it", refused)
	}
}
