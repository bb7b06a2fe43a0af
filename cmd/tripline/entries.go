package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// narrowed is embedded by the commands on many stored triggers.
type narrowed struct {
	Fence     string `placeholder:"ID" help:"Only of this fence."`
	Device    string `placeholder:"ID" help:"Only of this device."`
	OlderThan string `placeholder:"AGE" help:"Only what has been there this long, as in 90s, 2h or 7d."`
}

func (n narrowed) query() url.Values {
	q := url.Values{}
	for key, v := range map[string]string{"fence": n.Fence, "device": n.Device, "older_than": n.OlderThan} {
		if v != "" {
			q.Set(key, v)
		}
	}
	return q
}

// selection is the query of an action: all must be said.
func (n narrowed) selection() url.Values {
	q := n.query()
	if len(q) == 0 {
		q.Set("all", "true")
	}
	return q
}

// String says in words what is meant.
func (n narrowed) String() string {
	text := ""
	if n.Fence != "" {
		text += " of fence " + n.Fence
	}
	if n.Device != "" {
		text += " of device " + n.Device
	}
	if n.OlderThan != "" {
		text += " older than " + n.OlderThan
	}
	return text
}

// entry is a parked trigger or a dead letter.
type entry struct {
	Consumer   string          `json:"consumer"`
	Seq        uint64          `json:"seq"`
	ID         string          `json:"id"`
	Device     string          `json:"device"`
	Fence      string          `json:"fence"`
	Transition string          `json:"transition"`
	At         time.Time       `json:"at"`
	Sequence   string          `json:"sequence"`
	Priority   string          `json:"priority"`
	Redriven   bool            `json:"redriven,omitempty"`
	Parked     *time.Time      `json:"parked"`
	Reason     string          `json:"reason"`
	Bytes      int             `json:"bytes,omitempty"`
	Attempts   int             `json:"attempts,omitempty"`
	Error      string          `json:"error,omitempty"`
	Died       *time.Time      `json:"died,omitempty"`
	Body       json.RawMessage `json:"body,omitempty"`
}

// lister is embedded by the commands that list.
type lister struct {
	narrowed
	Limit int `default:"100" help:"How many at most, per consumer; 0 is all."`
	operator
}

// list reads the entries of one kind, "fallback" or "dead", of one consumer
// or of all, and tells whether there are more.
func (l *lister) list(ctx context.Context, s *service, consumer, kind string) (all []entry, more bool, err error) {
	names := []string{consumer}
	if consumer == "" {
		if names, err = consumerNames(ctx, s); err != nil {
			return nil, false, err
		}
	}
	all = []entry{}
	for _, name := range names {
		entries, rest, err := l.listOne(ctx, s, name, kind)
		if err != nil {
			return nil, false, err
		}
		all = append(all, entries...)
		more = more || rest
	}
	return all, more, nil
}

// listOne reads page after page of one consumer.
func (l *lister) listOne(ctx context.Context, s *service, consumer, kind string) (all []entry, more bool, err error) {
	const most = 1000
	q := l.query()
	for {
		want := most
		if l.Limit > 0 {
			want = min(most, l.Limit-len(all))
		}
		q.Set("limit", strconv.Itoa(want))
		page, _, err := get[struct {
			Items []entry
			Next  *uint64
		}](ctx, s, at("consumers", consumer, kind), q)
		if err != nil {
			return nil, false, err
		}
		for _, e := range page.Items {
			e.Consumer = consumer
			all = append(all, e)
		}
		if page.Next == nil || l.Limit > 0 && len(all) >= l.Limit {
			return all, page.Next != nil, nil
		}
		q.Set("after", strconv.FormatUint(*page.Next, 10))
	}
}

// print shows a listing. columns are what differs between the kinds.
func (l *lister) print(s streams, entries []entry, more bool, empty string, head []string, columns func(entry) []string) error {
	if l.JSON {
		raw, err := json.Marshal(entries)
		if err != nil {
			return err
		}
		return printJSON(s.out, raw)
	}
	if len(entries) == 0 {
		_, err := fmt.Fprintln(s.out, empty)
		return err
	}
	t := newTable(s.colour, append([]string{"CONSUMER", ">SEQ", "DEVICE", "FENCE", "TRANSITION", "AT"}, head...)...)
	for _, e := range entries {
		t.add(append([]string{
			e.Consumer, strconv.FormatUint(e.Seq, 10), e.Device, e.Fence, e.Transition, stamp(e.At),
		}, columns(e)...)...)
	}
	if err := t.write(s.out); err != nil {
		return err
	}
	if more {
		fmt.Fprintf(s.err, "there are more; --limit 0 lists all\n")
	}
	return nil
}

// one is embedded by the commands on one stored trigger.
type one struct {
	Consumer string `arg:"" help:"Consumer."`
	Seq      uint64 `arg:"" help:"Its seq, as ls shows it."`
	operator
}

// show prints one entry, with its body.
func (o *one) show(s streams, kind string) error {
	svc, err := o.service()
	if err != nil {
		return err
	}
	_, raw, err := get[entry](s.ctx, svc, at("consumers", o.Consumer, kind, strconv.FormatUint(o.Seq, 10)), nil)
	if err != nil {
		return err
	}
	return printJSON(s.out, raw)
}

func consumerNames(ctx context.Context, s *service) ([]string, error) {
	list, _, err := get[struct{ Consumers []struct{ Name string } }](ctx, s, "/consumers", nil)
	names := make([]string, len(list.Consumers))
	for i, c := range list.Consumers {
		names[i] = c.Name
	}
	return names, err
}

// stamp is a time to the second, UTC.
func stamp(t time.Time) string { return t.UTC().Format(time.DateTime) }
