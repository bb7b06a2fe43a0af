package geofence

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// schedule says when a fence is active: the union of its windows.
type schedule struct{ windows []window }

// window is a span of hours on some days of the week, by the wall clock of a
// place.
type window struct {
	zone     *time.Location
	days     uint8 // bit 0 is Sunday; the day that the window begins on
	from, to int   // minutes since midnight; to <= from ends on the next day
}

const dayMinutes = 24 * 60

// forever is the end of an activity that doesn't end.
const forever int64 = math.MaxInt64

// active says whether the fence is active at ts, unix milliseconds.
func (s *schedule) active(ts int64) bool {
	if s == nil {
		return true
	}
	for i := range s.windows {
		if _, ok := s.windows[i].ends(ts); ok {
			return true
		}
	}
	return false
}

// until returns when an activity that lasts at ts ends.
func (s *schedule) until(ts int64) int64 {
	if s == nil {
		return forever
	}
	const week = 7 * 24 * 3600 * 1000
	for t := ts; t <= ts+week+week/7; {
		last, found := t, false
		for i := range s.windows {
			if end, ok := s.windows[i].ends(t); ok {
				last, found = max(last, end), true
			}
		}
		if !found {
			return t
		}
		if last == t { // a wall clock that was put back
			last = t - t%60_000 + 60_000
		}
		t = last
	}
	return forever
}

// ends returns the end of the window that ts lies in, if it does.
func (w *window) ends(ts int64) (end int64, ok bool) {
	t := time.UnixMilli(ts).In(w.zone)
	minute := t.Hour()*60 + t.Minute()
	day := int(t.Weekday())
	overnight := w.to <= w.from
	switch {
	case w.days>>day&1 != 0 && minute >= w.from && (overnight || minute < w.to):
		return w.endOn(t, overnight), true
	case overnight && minute < w.to && w.days>>((day+6)%7)&1 != 0:
		return w.endOn(t, false), true
	}
	return 0, false
}

func (w *window) endOn(t time.Time, next bool) int64 {
	y, m, d := t.Date()
	if next {
		d++
	}
	end := time.Date(y, m, d, 0, w.to, 0, 0, w.zone)
	if end.Hour()*60+end.Minute() != w.to%dayMinutes {
		// The clock is put forward over the end, so it ends there.
		before, after := end.ZoneBounds()
		if end = before; !before.After(t) {
			end = after
		}
	}
	return end.UnixMilli()
}

var dayNames = [...]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

func dayOf(name string) (int, error) {
	for i, n := range dayNames {
		if strings.EqualFold(name, n) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%q is not a day: use mon, tue, wed, thu, fri, sat or sun", name)
}

// parseDays reads "mon" or "mon-fri" into a set.
func parseDays(text string) (uint8, error) {
	from, to, isRange := strings.Cut(text, "-")
	first, err := dayOf(from)
	if err != nil {
		return 0, err
	}
	last := first
	if isRange {
		if last, err = dayOf(to); err != nil {
			return 0, err
		}
	}
	days := uint8(0)
	for d := first; ; d = (d + 1) % 7 {
		days |= 1 << d
		if d == last {
			return days, nil
		}
	}
}

// parseHours reads "07:00-19:30" into minutes since midnight.
func parseHours(text string) (from, to int, err error) {
	a, b, ok := strings.Cut(text, "-")
	if !ok {
		return 0, 0, fmt.Errorf("%q is not a span of hours such as 07:00-19:00", text)
	}
	if from, err = parseClock(a); err != nil {
		return 0, 0, err
	}
	if to, err = parseClock(b); err != nil {
		return 0, 0, err
	}
	if from == to || from == dayMinutes {
		return 0, 0, fmt.Errorf("%q is no time at all; leave hours out for the whole day", text)
	}
	return from, to, nil
}

func parseClock(text string) (int, error) {
	if text == "24:00" {
		return dayMinutes, nil
	}
	t, err := time.Parse("15:04", text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time of day such as 07:00", text)
	}
	return t.Hour()*60 + t.Minute(), nil
}
