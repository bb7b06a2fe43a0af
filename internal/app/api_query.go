package app

import (
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/internal/config"
)

// How many entries a listing shows unless asked for another number, and at
// most.
const (
	pageDefault = 100
	pageMax     = 1000
)

// filterKeys are the parameters that narrow a listing, or what is removed or
// sent again.
var filterKeys = []string{"fence", "device", "older_than"}

// query reads parameters, and refuses those that nobody reads: a mistyped
// filter must not purge everything.
func query(r *http.Request, known ...string) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, failf(http.StatusBadRequest, "the query: %w", err)
	}
	for key, values := range q {
		if !slices.Contains(known, key) {
			return nil, failf(http.StatusBadRequest, "unknown parameter %q: it takes %q", key, known)
		}
		if len(values) > 1 {
			return nil, failf(http.StatusBadRequest, "parameter %q is given %d times", key, len(values))
		}
	}
	return q, nil
}

// filter reads the filter of a listing or of an action.
func filter(q url.Values) (f fallback.Filter, err error) {
	f.Fence, f.Device = q.Get("fence"), q.Get("device")
	if text := q.Get("older_than"); text != "" {
		if f.OlderThan, err = config.ParseDuration(text); err != nil || f.OlderThan < 0 {
			return f, failf(http.StatusBadRequest, "older_than %q: write a duration such as 90s, 2h or 7d", text)
		}
	}
	return f, nil
}

// pageOf reads what part of a listing is wanted.
func pageOf(r *http.Request) (f fallback.Filter, limit int, err error) {
	q, err := query(r, append(filterKeys, "after", "limit")...)
	if err != nil {
		return f, 0, err
	}
	if f, err = filter(q); err != nil {
		return f, 0, err
	}
	if text := q.Get("after"); text != "" {
		if f.After, err = strconv.ParseUint(text, 10, 64); err != nil {
			return f, 0, failf(http.StatusBadRequest, "after %q: write the seq of an entry", text)
		}
	}
	limit = pageDefault
	if text := q.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > pageMax {
			return f, 0, failf(http.StatusBadRequest, "limit %q: write a number from 1 to %d", text, pageMax)
		}
	}
	return f, limit, nil
}

// selection reads the filter of an action on many entries. All of them are
// only meant where that is said.
func selection(r *http.Request) (fallback.Filter, error) {
	q, err := query(r, append(filterKeys, "all")...)
	if err != nil {
		return fallback.Filter{}, err
	}
	f, err := filter(q)
	all := q.Get("all")
	switch {
	case err != nil:
		return f, err
	case all != "" && all != "true":
		return f, failf(http.StatusBadRequest, "all %q: the only value is true", all)
	case (f == fallback.Filter{}) != (all == "true"):
		return f, failf(http.StatusBadRequest, "say what is meant: one of %q, or all=true", filterKeys)
	}
	return f, nil
}

// listing is a page of entries. Next is the after of the next one.
type listing[T any] struct {
	Items []T     `json:"items"`
	Next  *uint64 `json:"next"`
}

// list takes a page out of what a queue yields.
func list[E, T any](entries iter.Seq2[E, error], limit int, seq func(*E) uint64, show func(*E) T) (listing[T], error) {
	l := listing[T]{Items: []T{}}
	last := uint64(0)
	for e, err := range entries {
		if err != nil {
			return l, err
		}
		if len(l.Items) == limit {
			l.Next = &last
			break
		}
		l.Items = append(l.Items, show(&e))
		last = seq(&e)
	}
	return l, nil
}

// sought returns the entry that a request names by its seq. one yields the
// entries of a filter.
func sought[E any](r *http.Request, one func(fallback.Filter) iter.Seq2[E, error], seq func(*E) uint64) (E, error) {
	var none E
	number, err := strconv.ParseUint(r.PathValue("seq"), 10, 64)
	if err != nil || number == 0 {
		return none, failf(http.StatusBadRequest, "%q is no seq", r.PathValue("seq"))
	}
	for e, err := range one(fallback.Filter{After: number - 1}) {
		if err != nil {
			return none, err
		}
		if seq(&e) == number {
			return e, nil
		}
		break
	}
	return none, failf(http.StatusNotFound, "there is no %d; it may have been delivered or removed", number)
}

// longFunc is an [apiFunc] that may take as long as the client waits.
type longFunc apiFunc

// ServeHTTP implements [http.Handler].
func (f longFunc) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The server's read timeout is meant for the request, which has been
	// read; left in place it would end the request's context.
	http.NewResponseController(w).SetReadDeadline(time.Time{})
	v, err := f(r)
	answer(w, v, err)
}

// body is a trigger's body as a part of an answer.
func body(b []byte) json.RawMessage {
	if !json.Valid(b) {
		b, _ = json.Marshal(string(b))
	}
	return b
}

// optional is nil for the zero time.
func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
