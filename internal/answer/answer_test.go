package answer_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/tripline/tripline/internal/answer"
	"github.com/tripline/tripline/router"
)

func TestR9_Causes(t *testing.T) {
	want := map[int]router.Cause{
		400: router.Rejected, 413: router.Rejected, 415: router.Rejected, 422: router.Rejected,
		410: router.Gone, 429: router.Throttled, 503: router.Unavailable,
	}
	for status := 100; status < 600; status++ {
		if got := answer.Cause(status); got != want[status] {
			t.Errorf("%d: cause %d, want %d", status, got, want[status])
		}
	}
}

func TestR9_RetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 29, 21, 0, 0, 0, time.UTC)
	date := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for _, c := range []struct {
		value, date string
		want        time.Duration
	}{
		{"", "", 0},
		{"0", "", 0},
		{"12", "", 12 * time.Second},
		{" 12 ", "", 12 * time.Second},
		{"3600", "", time.Hour},
		{"3601", "", time.Hour},
		{"9223372036854775807", "", time.Hour},
		{"99999999999999999999999", "", time.Hour},
		{"-1", "", 0},
		{"+5", "", 0},
		{"1.5", "", 0},
		{"5s", "", 0},
		{date(90 * time.Second), "", 90 * time.Second},
		{date(90 * time.Second), date(60 * time.Second), 30 * time.Second},
		{date(90 * time.Second), "yesterday", 90 * time.Second},
		{date(-time.Second), "", 0},
		{date(48 * time.Hour), "", time.Hour},
		{"Sunday, 29-Nov-26 21:00:10 GMT", "", 10 * time.Second},
		{"Sun Nov 29 21:00:10 2026", "", 10 * time.Second},
	} {
		if got := answer.RetryAfter(c.value, c.date, now, time.Hour); got != c.want {
			t.Errorf("%q at %q: %v, want %v", c.value, c.date, got, c.want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("120", "")
	f.Add("Sun, 29 Nov 2026 21:00:10 GMT", "Sun, 29 Nov 2026 21:00:00 GMT")
	f.Fuzz(func(t *testing.T, value, date string) {
		got := answer.RetryAfter(value, date, time.Unix(1_800_000_000, 0), time.Minute)
		if got < 0 || got > time.Minute {
			t.Errorf("%q at %q: %v is beyond 0..1m", value, date, got)
		}
	})
}
