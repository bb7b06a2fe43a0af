package jetqueue

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/router"
)

// triggerHeader carries all of a trigger but its body, as JSON: ids may hold
// any character, and a header's value may not. The payload is the body, byte
// by byte.
const triggerHeader = "Tripline-Trigger"

// wireVersion is that of the record below. Fields may be added to a version;
// anything else needs a new one.
const wireVersion = 1

// record is the stored form of a trigger. Partition and slot are in the
// subject.
type record struct {
	Version     int             `json:"v"`
	ID          string          `json:"id"`
	Sequence    string          `json:"sequence,omitempty"`
	Device      string          `json:"device"`
	Fence       string          `json:"fence,omitempty"`
	Kind        string          `json:"kind"`
	At          int64           `json:"at"`
	Priority    router.Priority `json:"priority,omitempty"` // its number
	Traceparent string          `json:"traceparent,omitempty"`
	Redriven    bool            `json:"redriven,omitempty"`
	Reason      string          `json:"reason"`           // why parked, or given up on
	Parked      int64           `json:"parked,omitempty"` // unix milliseconds, 0 for never

	// Of a dead letter alone.
	Attempts int    `json:"attempts,omitempty"`
	Error    string `json:"error,omitempty"`
	Died     int64  `json:"died,omitempty"` // unix milliseconds
}

func recordOf(t router.Trigger) record {
	return record{
		Version:     wireVersion,
		ID:          t.ID,
		Sequence:    t.Sequence,
		Device:      t.Device,
		Fence:       t.Fence,
		Kind:        t.Kind.String(),
		At:          t.At,
		Priority:    t.Priority,
		Traceparent: t.Traceparent,
		Redriven:    t.Redriven,
	}
}

func (r record) trigger(slot fallback.Slot, body []byte) router.Trigger {
	kind, _ := geofence.ParseKind(r.Kind) // 0 for one that a newer Tripline knows
	return router.Trigger{
		ID:          r.ID,
		Sequence:    r.Sequence,
		Device:      r.Device,
		Fence:       r.Fence,
		Kind:        kind,
		At:          r.At,
		Partition:   slot.Partition,
		Slot:        slot.Index,
		Priority:    r.Priority,
		Redriven:    r.Redriven,
		Body:        body,
		Traceparent: r.Traceparent,
	}
}

// message makes the message of a record.
func (r record) message(subject string, body []byte) (*nats.Msg, error) {
	head, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode trigger: %w", err)
	}
	return &nats.Msg{
		Subject: subject,
		Header:  nats.Header{triggerHeader: {string(head)}},
		Data:    body,
	}, nil
}

// parkMsg is the message of a trigger that is parked now.
func parkMsg(subject string, t router.Trigger, reason fallback.Reason) (*nats.Msg, error) {
	r := recordOf(t)
	r.Reason = string(reason)
	r.Parked = time.Now().UnixMilli()
	return r.message(subject, t.Body)
}

// maxErrorText bounds the error that a dead letter carries, in bytes: headers
// beyond 64 KiB are refused by the server, and the letter would be lost.
const maxErrorText = 4 << 10

// deadMsg is the message of a dead letter.
func deadMsg(subject string, d fallback.DeadLetter) (*nats.Msg, error) {
	r := recordOf(d.Trigger)
	r.Reason = string(d.Reason)
	r.Attempts = d.Attempts
	r.Error = strings.ToValidUTF8(d.Error[:min(len(d.Error), maxErrorText)], "")
	r.Parked, r.Died = unixMilli(d.Parked), unixMilli(d.Died)
	return r.message(subject, d.Trigger.Body)
}

// unixMilli is 0 for the zero time, and fromMilli undoes it.
func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMilli(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// stored is a message as the server gives it back.
type stored struct {
	Subject string    `json:"subject"`
	Seq     uint64    `json:"seq"`
	Header  []byte    `json:"hdrs"`
	Data    []byte    `json:"data"`
	Time    time.Time `json:"time"`
}

// read decodes a stored message.
func (m *stored) read(prefix string) (record, fallback.Slot, error) {
	var r record
	slot, err := parseSlot(m.Subject, prefix)
	if err != nil {
		return r, slot, err
	}
	header, err := nats.DecodeHeadersMsg(m.Header)
	if err != nil {
		return r, slot, fmt.Errorf("headers: %w", err)
	}
	if err := json.Unmarshal([]byte(header.Get(triggerHeader)), &r); err != nil {
		return r, slot, fmt.Errorf("header %s: %w", triggerHeader, err)
	}
	if r.Version != wireVersion {
		return r, slot, fmt.Errorf("header %s has version %d, this Tripline reads %d",
			triggerHeader, r.Version, wireVersion)
	}
	return r, slot, nil
}

func (m *stored) item(prefix string) (fallback.Item, error) {
	r, slot, err := m.read(prefix)
	if err != nil {
		return fallback.Item{}, err
	}
	it := fallback.Item{
		Trigger: r.trigger(slot, m.Data),
		Seq:     m.Seq,
		Parked:  fromMilli(r.Parked),
		Reason:  fallback.Reason(r.Reason),
		Size:    messageSize(len(m.Subject), len(m.Header), len(m.Data)),
	}
	if it.Parked.IsZero() {
		it.Parked = m.Time
	}
	return it, nil
}

func (m *stored) dead(prefix string) (fallback.DeadLetter, error) {
	r, slot, err := m.read(prefix)
	if err != nil {
		return fallback.DeadLetter{}, err
	}
	d := fallback.DeadLetter{
		Trigger:  r.trigger(slot, m.Data),
		Seq:      m.Seq,
		Reason:   fallback.DeadReason(r.Reason),
		Attempts: r.Attempts,
		Error:    r.Error,
		Parked:   fromMilli(r.Parked),
		Died:     fromMilli(r.Died),
	}
	if d.Died.IsZero() {
		d.Died = m.Time
	}
	return d, nil
}

// messageSize is what the server's file store counts for a message: a record
// of 34 bytes around subject, headers and payload.
func messageSize(subject, header, data int) int { return 34 + subject + header + data }

// sizeOf is messageSize of a message that is about to be sent.
func sizeOf(m *nats.Msg) int {
	header := len("NATS/1.0\r\n\r\n")
	for name, values := range m.Header {
		for _, v := range values {
			header += len(name) + len(": ") + len(v) + len("\r\n")
		}
	}
	return messageSize(len(m.Subject), header, len(m.Data))
}
