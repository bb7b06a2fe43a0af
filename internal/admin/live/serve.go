package live

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// The rhythm of a stream. Triggers, breaker changes and probes go out every
// beat, positions every second one (4 a second), the consumers' state every
// fourth (2 a second).
const (
	beat           = 125 * time.Millisecond
	devicesEvery   = 2
	consumersEvery = 4

	heartbeat = 15 * time.Second
	// patience is how long a client may take to accept what is sent. The
	// kernel's buffers come on top.
	patience = 10 * time.Second
	// perDevices bounds one `devices` event, so that no line grows without
	// limit; more devices make more events.
	perDevices = 5000
)

// ServeHTTP streams until the client goes, its request's context ends, or it
// is too slow. Beyond 64 clients it answers 503.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := newClient()
	before, ok := h.join(c)
	if !ok {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many live streams are open", http.StatusServiceUnavailable)
		return
	}
	defer h.leave(c)

	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // nginx would hold events back
	s := &stream{w: w, control: http.NewResponseController(w)}
	// The server's read timeout is meant for the request, which has been
	// read; left in place it would end the stream.
	s.control.SetReadDeadline(time.Time{})

	s.event(eventHello, hello{
		Version: h.config.Version, Namespace: h.config.Namespace, Started: h.config.Started, Now: time.Now(),
		GoneAfterS: h.config.GoneAfter.Seconds(),
	})
	for i := range before {
		s.event(eventHistory, &before[i])
	}
	if s.flush() != nil {
		return
	}
	ctx, stop := context.WithCancel(r.Context())
	known := h.gather(ctx)
	h.stream(ctx, s, c, known)
	stop()
	for range known { // until the gathering has ended
	}
}

// gather sends the positions of all known devices, in portions. A partition
// that is busy, or waits for room in a queue, may keep it waiting, so it has a
// goroutine of its own, which ends, and closes the channel, soon after ctx.
func (h *Hub) gather(ctx context.Context) <-chan []Position {
	known := make(chan []Position)
	go func() {
		defer close(known)
		if h.config.Positions == nil {
			return
		}
		for portion := range h.config.Positions(ctx) {
			portion = slices.DeleteFunc(portion, func(p Position) bool { return p.Age >= h.config.GoneAfter })
			if !hand(ctx, known, portion) {
				return
			}
		}
	}()
	return known
}

// hand gives a portion over, unless ctx ends first.
func hand(ctx context.Context, to chan<- []Position, portion []Position) bool {
	select {
	case to <- portion:
		return true
	case <-ctx.Done():
		return false
	}
}

// stream sends what waits for the client, beat by beat, and the known devices
// as they come.
func (h *Hub) stream(ctx context.Context, s *stream, c *client, known <-chan []Position) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	var t taken
	var moved []Position
	forgot := map[string]bool{} // since then a known device may have been forgotten
	quiet := 0                  // beats since something was sent
	for n := 1; ; {
		select {
		case <-ctx.Done():
			return
		case portion, more := <-known:
			s.positions(slices.DeleteFunc(portion, func(p Position) bool { return forgot[p.Device] }))
			if !more {
				known, forgot = nil, nil
			}
		case <-ticker.C:
			if n%devicesEvery == 0 {
				moved, c.seen = h.positions.since(c.seen, moved[:0])
				s.positions(moved)
			}
			c.take(&t, n%consumersEvery == 0)
			s.taken(&t)
			if known != nil {
				t.forgotten(forgot)
			}
			n++
			if quiet++; len(s.buf) == 0 && time.Duration(quiet)*beat >= heartbeat {
				s.buf = append(s.buf, ": still here\n\n"...)
			}
		}
		if len(s.buf) == 0 {
			continue
		}
		if s.flush() != nil {
			return
		}
		quiet = 0
	}
}

// stream gathers events in a buffer and writes them at once.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     []byte
	devices int // how many the open `devices` event holds
}

func (s *stream) taken(t *taken) {
	if t.dropped != (dropped{}) {
		s.event(eventDropped, t.dropped)
	}
	for _, n := range t.notices {
		s.event(n.event, n.body)
	}
	for i := range t.triggers {
		s.event(eventTrigger, &t.triggers[i])
	}
	if t.fences {
		s.event(eventFences, struct{}{})
	}
	if t.snapshot {
		s.event(eventConsumers, struct {
			Consumers []Consumer `json:"consumers"`
		}{t.consumers})
	}
}

// event adds an event. JSON has no line breaks, so one data line is enough.
func (s *stream) event(name string, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		return // only a ratio that isn't a number; the next state replaces it
	}
	s.buf = append(s.buf, "event: "...)
	s.buf = append(s.buf, name...)
	s.buf = append(s.buf, "\ndata: "...)
	s.buf = append(s.buf, data...)
	s.buf = append(s.buf, "\n\n"...)
}

// positions adds any number of positions.
func (s *stream) positions(list []Position) {
	for _, p := range list {
		s.device(p)
	}
	s.endDevices()
}

// device adds a position to a `devices` event, as a short row: there may be
// thousands, and six decimals are a tenth of a metre.
func (s *stream) device(p Position) {
	if s.devices == 0 {
		s.buf = append(s.buf, "event: "+eventDevices+"\ndata: {\"d\":["...)
	} else {
		s.buf = append(s.buf, ',')
	}
	s.buf = append(s.buf, '[')
	s.buf = appendString(s.buf, p.Device)
	s.buf = append(s.buf, ',')
	s.buf = strconv.AppendFloat(s.buf, p.Lat, 'f', 6, 64)
	s.buf = append(s.buf, ',')
	s.buf = strconv.AppendFloat(s.buf, p.Lon, 'f', 6, 64)
	s.buf = append(s.buf, ',')
	s.buf = strconv.AppendInt(s.buf, p.TS, 10)
	s.buf = append(s.buf, ',')
	if math.IsNaN(p.Heading) {
		s.buf = append(s.buf, "null"...)
	} else {
		s.buf = strconv.AppendFloat(s.buf, p.Heading, 'f', 0, 64)
	}
	if age := int64(p.Age.Seconds()); age > 0 {
		s.buf = append(s.buf, ',')
		s.buf = strconv.AppendInt(s.buf, age, 10)
	}
	s.buf = append(s.buf, ']')
	if s.devices++; s.devices == perDevices {
		s.endDevices()
	}
}

func (s *stream) endDevices() {
	if s.devices > 0 {
		s.buf = append(s.buf, "]}\n\n"...)
		s.devices = 0
	}
}

// flush writes the buffer and waits until the client's connection has it.
func (s *stream) flush() error {
	s.control.SetWriteDeadline(time.Now().Add(patience))
	if _, err := s.w.Write(s.buf); err != nil {
		return err
	}
	s.buf = s.buf[:0]
	return s.control.Flush()
}

// appendString appends a JSON string. Device ids are almost always plain.
func appendString(dst []byte, v string) []byte {
	for i := range len(v) {
		if c := v[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			quoted, err := json.Marshal(v)
			if err != nil {
				return append(dst, `""`...)
			}
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, v...)
	return append(dst, '"')
}
