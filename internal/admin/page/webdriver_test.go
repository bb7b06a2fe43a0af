package page_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience is how long the browser may take over anything. Only what a test
// measures is held to less.
const patience = 20 * time.Second

// browser is one tab of a headless Chromium, driven over the W3C WebDriver
// protocol.
type browser struct {
	t       *testing.T
	session string // base URL of the session
}

// openBrowser starts ChromeDriver and a Chromium, or skips the test where
// there is none. The flags are added to Chromium's.
func openBrowser(t *testing.T, flags ...string) *browser {
	t.Helper()
	if testing.Short() {
		t.Skip("the browser test takes a while: not with -short")
	}
	driver, err := exec.LookPath("chromedriver")
	if err != nil {
		t.Skip("no chromedriver: install Debian's chromium and chromium-driver to run the browser test")
	}
	chromium := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			chromium = found
			break
		}
	}
	if chromium == "" {
		t.Skip("no chromium: install Debian's chromium to run the browser test")
	}
	b := &browser{t: t, session: startDriver(t, driver) + "/session"}
	var made struct {
		SessionID string `json:"sessionId"`
	}
	b.call(http.MethodPost, "", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"browserName": "chrome",
		"goog:chromeOptions": map[string]any{"binary": chromium, "args": append([]string{
			"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
			"--disable-background-networking", "--disable-component-update", "--disable-sync",
			"--disable-dev-shm-usage", "--force-device-scale-factor=1", "--lang=en-GB",
			"--user-data-dir=" + t.TempDir(), "--window-size=1440,900",
		}, flags...)},
		"goog:loggingPrefs": map[string]string{"browser": "ALL"},
	}}}, &made)
	b.session += "/" + made.SessionID
	t.Cleanup(func() { b.call(http.MethodDelete, "", nil, nil) })
	return b
}

// startDriver runs ChromeDriver on a free port until the test ends.
func startDriver(t *testing.T, path string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	cmd := exec.Command(path, fmt.Sprintf("--port=%d", port))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	base := fmt.Sprintf("http://127.0.0.1:%d", port)
	deadline := time.Now().Add(patience)
	for {
		response, err := http.Get(base + "/status")
		if err == nil {
			response.Body.Close()
			return base
		}
		if time.Now().After(deadline) {
			t.Fatalf("chromedriver did not come up: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// call makes one call of the protocol and fails the test for its error.
func (b *browser) call(method, path string, body, result any) {
	b.t.Helper()
	if err := b.try(method, path, body, result); err != nil {
		b.t.Fatalf("browser: %s %s: %v", method, path, err)
	}
}

func (b *browser) try(method, path string, body, result any) error {
	var payload io.Reader
	if method == http.MethodPost {
		if body == nil {
			body = struct{}{}
		}
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		payload = bytes.NewReader(data)
	}
	// Not the test's own context: cleaning up comes after its end.
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, b.session+path, payload)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var answer struct{ Value json.RawMessage }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		var fault struct{ Error, Message string }
		json.Unmarshal(answer.Value, &fault)
		first, _, _ := strings.Cut(fault.Message, "\n")
		return errors.New(fault.Error + ": " + first)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(answer.Value, result)
}

func (b *browser) open(url string) {
	b.t.Helper()
	b.call(http.MethodPost, "/url", map[string]string{"url": url}, nil)
}

// eval runs a function body in the page.
func (b *browser) eval(script string, result any, args ...any) {
	b.t.Helper()
	if args == nil {
		args = []any{}
	}
	b.call(http.MethodPost, "/execute/sync", map[string]any{"script": script, "args": args}, result)
}

// cdp speaks to Chromium itself, for what WebDriver has no word for.
func (b *browser) cdp(command string, params map[string]any) {
	b.t.Helper()
	b.call(http.MethodPost, "/goog/cdp/execute", map[string]any{"cmd": command, "params": params}, nil)
}

// element is the first element of a CSS selector, once there is one.
func (b *browser) element(selector string) string {
	b.t.Helper()
	var found map[string]string
	b.until(selector+" is there", func() bool {
		return b.try(http.MethodPost, "/element", map[string]string{"using": "css selector", "value": selector}, &found) == nil
	})
	for _, id := range found {
		return "/element/" + id
	}
	b.t.Fatalf("no element %s", selector)
	return ""
}

// click waits until the element can be clicked, as a person would.
func (b *browser) click(selector string) {
	b.t.Helper()
	var last error
	if !b.poll(func() bool {
		last = b.try(http.MethodPost, b.element(selector)+"/click", nil, nil)
		return last == nil
	}) {
		b.t.Fatalf("clicking %s: %v", selector, last)
	}
}

// write types a text into a field that it empties first.
func (b *browser) write(selector, text string) {
	b.t.Helper()
	e := b.element(selector)
	b.call(http.MethodPost, e+"/clear", nil, nil)
	b.call(http.MethodPost, e+"/value", map[string]string{"text": text}, nil)
}

// press sends a key to whatever has the focus.
func (b *browser) press(key rune) {
	b.t.Helper()
	b.actions(map[string]any{"type": "key", "id": "keys", "actions": []any{
		map[string]any{"type": "keyDown", "value": string(key)}, map[string]any{"type": "keyUp", "value": string(key)},
	}})
}

// enterText types into whatever has the focus.
func (b *browser) enterText(text string) {
	b.t.Helper()
	for _, key := range text {
		b.press(key)
	}
}

// tap clicks at points of the window, one after the other.
func (b *browser) tap(points ...[2]int) {
	b.t.Helper()
	var steps []any
	for _, p := range points {
		steps = append(steps,
			map[string]any{"type": "pointerMove", "duration": 60, "x": p[0], "y": p[1]},
			map[string]any{"type": "pointerDown", "button": 0}, map[string]any{"type": "pointerUp", "button": 0},
			map[string]any{"type": "pause", "duration": 350}) // two quick ones would be a double click
	}
	b.actions(map[string]any{"type": "pointer", "id": "mouse", "parameters": map[string]string{"pointerType": "mouse"}, "actions": steps})
}

func (b *browser) actions(source map[string]any) {
	b.t.Helper()
	b.call(http.MethodPost, "/actions", map[string]any{"actions": []any{source}}, nil)
}

// text is what a person reads in the first element of a selector; "" if
// there is none.
func (b *browser) text(selector string) string {
	b.t.Helper()
	var text string
	b.eval(`const e = document.querySelector(arguments[0]); return e && e.checkVisibility() ? e.innerText : ""`, &text, selector)
	return text
}

// until waits for a condition of the page, and fails the test without it.
func (b *browser) until(what string, condition func() bool) {
	b.t.Helper()
	if !b.poll(condition) {
		b.shot("failure")
		b.t.Fatalf("after %v it is still not so that %s\nconsole: %v", patience, what, b.console())
	}
}

func (b *browser) poll(condition func() bool) bool {
	deadline := time.Now().Add(patience)
	for !condition() {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(15 * time.Millisecond) // another process: there is nothing to wait on
	}
	return true
}

// console returns the warnings and errors since the last call.
func (b *browser) console() []string {
	b.t.Helper()
	var entries []struct{ Level, Message string }
	b.call(http.MethodPost, "/se/log", map[string]string{"type": "browser"}, &entries)
	var bad []string
	for _, e := range entries {
		if e.Level == "SEVERE" || e.Level == "WARNING" {
			bad = append(bad, e.Message)
		}
	}
	return bad
}

// size makes the page as wide and high as a device's.
func (b *browser) size(width, height int, phone bool) {
	b.t.Helper()
	b.cdp("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 0, "mobile": phone})
}

func (b *browser) scheme(name string) {
	b.t.Helper()
	b.cdp("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]string{"name": "prefers-color-scheme", "value": name}}})
}

// shot saves a screenshot where TRIPLINE_SHOTS names a folder.
func (b *browser) shot(name string) {
	b.t.Helper()
	dir := os.Getenv("TRIPLINE_SHOTS")
	if dir == "" {
		return
	}
	var encoded string
	b.call(http.MethodGet, "/screenshot", nil, &encoded)
	picture, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
