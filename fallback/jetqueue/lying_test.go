package jetqueue_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/internal/natstest"
)

// liar answers for JetStream, on a server that has none: a replica that was
// seen to answer "not found" for messages that were there can't be had to
// order from a real one.
type liar struct {
	gets    atomic.Int32 // questions for a message
	missing int32        // so many of them get "not found"
	count   int          // what stream-info says of any subject
	last    uint64       // the last sequence of any subject
}

func (l *liar) answer(m *nats.Msg) {
	verb, stream, _ := strings.Cut(strings.TrimPrefix(m.Subject, "$JS.API.STREAM."), ".")
	if verb == "MSG" {
		_ = m.Respond(l.message(m.Data))
		return
	}
	subjects, maxBytes, maxAge := "tripline.fallback.dispatch.*.*", 64<<20, 0
	if stream == "TRIPLINE_DEAD" {
		subjects, maxBytes, maxAge = "tripline.dead.*.*.*", 1<<20, 30*24*3600*1_000_000_000
	}
	var req struct {
		Filter string `json:"subjects_filter"`
	}
	_ = json.Unmarshal(m.Data, &req)
	counts := ""
	if req.Filter != "" && l.count > 0 {
		counts = fmt.Sprintf(`,"subjects":{"%s":%d}`, req.Filter, l.count)
	}
	_ = m.Respond(fmt.Appendf(nil, `{"config":{"name":"%s","subjects":["%s"],"retention":"limits","storage":"file",
		"discard":"new","max_bytes":%d,"max_age":%d,"duplicate_window":120000000000},
		"total":1,"state":{"messages":%d%s}}`, stream, subjects, maxBytes, maxAge, l.count, counts))
}

func (l *liar) message(req []byte) []byte {
	if strings.Contains(string(req), "last_by_subj") {
		return fmt.Appendf(nil, `{"message":{"subject":"x","seq":%d}}`, l.last)
	}
	if l.gets.Add(1) <= l.missing {
		return []byte(`{"error":{"code":404,"err_code":10037,"description":"no message found"}}`)
	}
	m, _ := json.Marshal(map[string]any{"message": map[string]any{
		"subject": "tripline.fallback.dispatch.3.7", "seq": 9,
		"hdrs": []byte("NATS/1.0\r\nTripline-Trigger: {\"v\":1,\"id\":\"there\"}\r\n\r\n"),
	}})
	return m
}

// "Not found" is never taken for an empty slot while the stream counts
// something in it.
func TestNotFoundIsNotBelievedAgainstTheCount(t *testing.T) {
	slot := fallback.Slot{Partition: 3, Index: 7}
	for _, c := range []struct {
		name  string
		liar  *liar
		after uint64
		found bool
		fails bool
	}{
		{"never found", &liar{missing: 1000, count: 2}, 0, false, true},
		{"found when asked again", &liar{missing: 1, count: 2}, 0, true, false},
		{"never found, and the last comes later", &liar{missing: 1000, count: 2, last: 9}, 5, false, true},
		{"the last was before", &liar{missing: 1000, count: 2, last: 5}, 5, false, false},
		{"nothing is counted", &liar{missing: 1000, count: 0}, 0, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := natstest.Start(t, func(o *server.Options) { o.JetStream = false })
			if _, err := s.Conn(t).Subscribe("$JS.API.>", c.liar.answer); err != nil {
				t.Fatal(err)
			}
			nc := s.Conn(t)
			eventually(t, "the liar listens", func() bool {
				_, err := nc.Request("$JS.API.STREAM.INFO.X", nil, patience)
				return err == nil
			})
			q := open(t, nc)
			it, ok, err := q.Head(t.Context(), slot, c.after)
			if ok != c.found || (err != nil) != c.fails {
				t.Errorf("head: %q, %v, %v; want found %v, an error %v", it.Trigger.ID, ok, err, c.found, c.fails)
			}
			if err != nil && !strings.Contains(err.Error(), "counts triggers that it doesn't find") {
				t.Errorf("the error doesn't say what is wrong: %v", err)
			}
			if c.after > 0 {
				return
			}
			c.liar.gets.Store(0)
			if _, ok, err := q.Oldest(t.Context()); ok != c.found || (err != nil) != c.fails {
				t.Errorf("oldest: %v, %v; want found %v, an error %v", ok, err, c.found, c.fails)
			}
		})
	}
}
