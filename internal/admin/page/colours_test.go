package page_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Text on its background keeps the 4.5 to 1 that WCAG asks for, in light and
// in dark.
func TestTextCanBeReadInBothSchemes(t *testing.T) {
	data, err := os.ReadFile("web/src/style/colours.css")
	if err != nil {
		t.Fatal(err)
	}
	light, dark, found := strings.Cut(string(data), "@media (prefers-color-scheme: dark)")
	if !found {
		t.Fatal("colours.css has no dark scheme")
	}
	pairs := [][2]string{
		{"ink", "page"}, {"ink", "surface"}, {"ink", "raised"}, {"muted", "page"}, {"muted", "surface"}, {"muted", "raised"},
		{"on-accent", "accent"}, {"surface", "ink"}, {"surface", "bad"}, {"bad", "surface"},
		{"ok", "ok-soft"}, {"testing", "testing-soft"}, {"bad", "bad-soft"}, {"off", "off-soft"}, {"ink", "testing-soft"}, {"ink", "bad-soft"},
		{"ok", "surface"}, {"t-enter", "page"}, {"t-exit", "page"}, {"t-dwell", "page"}, {"t-cross", "page"}, {"t-other", "page"},
		{"t-enter", "surface"}, {"t-exit", "surface"}, {"t-dwell", "surface"}, {"t-cross", "surface"},
		{"muted", "sea"}, {"muted", "land"}, {"label", "sea"}, {"label", "land"}, {"fence-label", "land"}, {"fence-label", "sea"},
	}
	for scheme, css := range map[string]string{"light": light, "dark": dark} {
		colours := map[string]float64{}
		for _, m := range regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{6});`).FindAllStringSubmatch(css, -1) {
			colours[m[1]] = luminance(t, m[2])
		}
		for _, p := range pairs {
			text, ok1 := colours[p[0]]
			ground, ok2 := colours[p[1]]
			if !ok1 || !ok2 {
				t.Errorf("%s: no colour %s or %s", scheme, p[0], p[1])
				continue
			}
			if c := (max(text, ground) + 0.05) / (min(text, ground) + 0.05); c < 4.5 {
				t.Errorf("%s: %s on %s has a contrast of %.2f", scheme, p[0], p[1], c)
			}
		}
	}
}

// luminance is WCAG's relative luminance of an sRGB colour.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	v, err := strconv.ParseUint(hex, 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	linear := func(shift uint) float64 {
		c := float64(v>>shift&0xff) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(16) + 0.7152*linear(8) + 0.0722*linear(0)
}
