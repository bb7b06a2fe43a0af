// Package page is the live page: a map of what moves, a card for each
// consumer, the stream of triggers. Its files are built from the source in
// web/ and embedded; nothing is fetched from elsewhere.
package page

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
)

//go:embed dist
var dist embed.FS

// Options say what an operator may change about the page.
type Options struct {
	// TileURL is a template like https://tile.example/{z}/{x}/{y}.png, or
	// /path/{z}/{x}/{y}.png behind the page's own address, for a background of
	// map tiles; "" for the built-in coastlines alone. It is the only outside
	// address that the page's browser will ever ask.
	TileURL string
	// TileCredit names whose tiles they are, as their licence may demand.
	TileCredit string
}

// Handler serves "/" and all that is under "/page/". None of it is secret, so
// it needs no token; what the page shows comes from the API, which may. The
// error says what is wrong with the tile URL.
func Handler(o Options) (http.Handler, error) {
	origin, err := TileOrigin(o.TileURL)
	if err != nil {
		return nil, fmt.Errorf("page: the tile URL %w", err)
	}
	entries, err := dist.ReadDir("dist")
	if err != nil {
		return nil, fmt.Errorf("page: reading the embedded files: %w", err)
	}
	rules := rulesFor(origin)
	mux := http.NewServeMux()
	for _, entry := range entries {
		name := entry.Name()
		body, err := dist.ReadFile(path.Join("dist", name))
		if err != nil {
			return nil, fmt.Errorf("page: reading the embedded files: %w", err)
		}
		if name == "index.html" {
			mux.Handle("GET /{$}", newAsset(name, withTiles(body, o, origin), rules))
			continue
		}
		mux.Handle("GET /page/"+name, newAsset(name, body, rules))
	}
	return mux, nil
}

// rulesFor is what a browser may do for the page: nothing but our own files
// runs, and nothing is asked for anywhere else but tiles. Who serves the tiles
// may insist on knowing which site they are for, as OpenStreetMap does: it
// learns the page's origin, nothing more.
func rulesFor(tiles string) rules {
	images, referrer := "img-src 'self' data:", "no-referrer"
	if tiles != "" {
		images, referrer = images+" "+tiles, "strict-origin"
	}
	policy := strings.Join([]string{
		"default-src 'none'",
		"script-src 'self'",
		"style-src 'self'",
		images,
		"connect-src 'self'",
		"base-uri 'none'",
		"form-action 'none'",
		"frame-ancestors 'none'",
	}, "; ")
	return rules{policy, referrer}
}

// placeholder is what a tile URL's template leaves to the map.
var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

const tileForms = "give it as https://host/{z}/{x}/{y}.png, or as /path/{z}/{x}/{y}.png behind the page's own address"

// TileOrigin checks a tile URL and returns its scheme and host, as a
// Content-Security-Policy names them; "" for tiles behind the page's own
// address, and for none. An error continues a sentence that names the URL's
// place.
func TileOrigin(template string) (string, error) {
	if template == "" {
		return "", nil
	}
	for _, part := range []string{"{z}", "{x}", "{y}"} {
		if !strings.Contains(template, part) {
			return "", fmt.Errorf("%q has no %s: %s", template, part, tileForms)
		}
	}
	for _, part := range placeholder.FindAllString(template, -1) {
		if part != "{z}" && part != "{x}" && part != "{y}" {
			return "", fmt.Errorf("%q: nothing is put in place of %s: %s", template, part, tileForms)
		}
	}
	u, err := url.Parse(template)
	if err != nil {
		return "", fmt.Errorf("%q is not a URL: %w", template, errors.Unwrap(err))
	}
	switch {
	case u.Scheme == "" && u.Host == "" && strings.HasPrefix(u.Path, "/"):
		return "", nil
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || strings.ContainsAny(u.Host, "{};, '*"):
		return "", fmt.Errorf("%q is not an address of tiles: %s", template, tileForms)
	case u.User != nil:
		return "", fmt.Errorf("%q holds a user name, which browsers send nowhere: leave it out", template)
	}
	return u.Scheme + "://" + u.Host, nil
}

// withTiles tells the page's script of the tiles, in attributes: an inline
// script would need a hole in the policy.
func withTiles(index []byte, o Options, origin string) []byte {
	if o.TileURL == "" {
		return index
	}
	index = bytes.Replace(index, []byte(`data-tiles=""`), []byte(`data-tiles="`+html.EscapeString(o.TileURL)+`"`), 1)
	credit := o.TileCredit
	if credit == "" {
		credit = strings.TrimSpace("Map tiles " + origin)
	}
	return bytes.Replace(index, []byte(">Natural Earth<"), []byte(">"+html.EscapeString(credit)+" · Natural Earth<"), 1)
}
