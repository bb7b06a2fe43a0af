// Package page is the live page: a map of what moves, a card for each
// consumer, the stream of triggers. Its files are built from the source in
// web/ and embedded; nothing is fetched from elsewhere.
package page

import (
	"bytes"
	"embed"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"path"
	"strings"
)

//go:embed dist
var dist embed.FS

// Options say what an operator may change about the page.
type Options struct {
	// TileURL is a template like https://tile.example/{z}/{x}/{y}.png for a
	// background of map tiles, "" for the built-in coastlines. It is the only
	// outside address that the page's browser will ever ask.
	TileURL string
	// TileCredit names whose tiles they are, as their licence may demand.
	TileCredit string
}

// Handler serves "/" and all that is under "/page/". None of it is secret, so
// it needs no token; what the page shows comes from the API, which may. The
// error says what is wrong with the tile URL.
func Handler(o Options) (http.Handler, error) {
	origin, err := tileOrigin(o.TileURL)
	if err != nil {
		return nil, err
	}
	entries, err := dist.ReadDir("dist")
	if err != nil {
		return nil, fmt.Errorf("page: reading the embedded files: %w", err)
	}
	policy := policy(origin)
	mux := http.NewServeMux()
	for _, entry := range entries {
		name := entry.Name()
		body, err := dist.ReadFile(path.Join("dist", name))
		if err != nil {
			return nil, fmt.Errorf("page: reading the embedded files: %w", err)
		}
		if name == "index.html" {
			mux.Handle("GET /{$}", newAsset(name, withTiles(body, o), policy))
			continue
		}
		mux.Handle("GET /page/"+name, newAsset(name, body, policy))
	}
	return mux, nil
}

// policy is the Content-Security-Policy: nothing but our own files runs, and
// nothing is asked for anywhere else but tiles.
func policy(tiles string) string {
	images := "img-src 'self' data:"
	if tiles != "" {
		images += " " + tiles
	}
	return strings.Join([]string{
		"default-src 'none'",
		"script-src 'self'",
		"style-src 'self'",
		images,
		"connect-src 'self'",
		"base-uri 'none'",
		"form-action 'none'",
		"frame-ancestors 'none'",
	}, "; ")
}

// tileOrigin is the scheme and host of a tile URL, as a policy names them.
func tileOrigin(template string) (string, error) {
	if template == "" {
		return "", nil
	}
	for _, part := range []string{"{z}", "{x}", "{y}"} {
		if !strings.Contains(template, part) {
			return "", fmt.Errorf("tile URL %q has no %s: give it as https://host/{z}/{x}/{y}.png", template, part)
		}
	}
	u, err := url.Parse(template)
	if err != nil {
		return "", fmt.Errorf("tile URL %q: %w", template, err)
	}
	if u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.ContainsAny(u.Host, "{};, '") {
		return "", fmt.Errorf("tile URL %q: give it as https://host/{z}/{x}/{y}.png", template)
	}
	return u.Scheme + "://" + u.Host, nil
}

// withTiles tells the page's script of the tiles, in attributes: an inline
// script would need a hole in the policy.
func withTiles(index []byte, o Options) []byte {
	if o.TileURL == "" {
		return index
	}
	index = bytes.Replace(index, []byte(`data-tiles=""`), []byte(`data-tiles="`+html.EscapeString(o.TileURL)+`"`), 1)
	credit := o.TileCredit
	if credit == "" {
		credit = "Tiles from " + o.TileURL[:strings.Index(o.TileURL, "/{")]
	}
	return bytes.Replace(index, []byte(">Natural Earth<"), []byte(">"+html.EscapeString(credit)+"<"), 1)
}
