package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
)

// verdict is how a run went. The keys are part of what others read.
type verdict struct {
	Expected   int     `json:"expected"`   // deliveries that were due
	Delivered  int     `json:"delivered"`  // of these
	Lost       int     `json:"lost"`       // of these, not delivered
	Reordered  int     `json:"reordered"`  // new triggers behind a later one of their device
	Unexpected int     `json:"unexpected"` // triggers that nobody expected
	Duplicates int     `json:"duplicates"` // repeats: same id, same sequence
	Kills      int     `json:"kills"`
	Seconds    float64 `json:"seconds"`

	// Resequenced counts repeats that a consumer can't tell by their sequence.
	Resequenced int      `json:"resequenced"`
	Messages    int64    `json:"messages"`
	Retries     int64    `json:"retries"`
	Seed        uint64   `json:"seed"`
	External    bool     `json:"external"`
	Replicas    int      `json:"replicas"`
	NATS        int      `json:"nats,omitempty"`   // servers of a cluster
	Faults      int      `json:"faults,omitempty"` // of the connection and the server
	Problems    []string `json:"problems,omitempty"`

	account []string // of the first offences
}

func (v *verdict) ok() bool {
	return v.Lost == 0 && v.Reordered == 0 && v.Unexpected == 0 && v.Resequenced == 0 && len(v.Problems) == 0
}

// fail notes a problem, if there is one.
func (v *verdict) fail(err error) {
	if err != nil {
		v.Problems = append(v.Problems, err.Error())
	}
}

// accountMost bounds the offences of a kind that are told one by one.
const accountMost = 8

// judge compares what came with what was to come.
func (r *run) judge(ctx context.Context) (*verdict, error) {
	v := &verdict{
		Kills: r.kills, Seconds: r.since().Seconds(), Messages: r.fleet.stored.Load(), Retries: r.fleet.retries.Load(),
		Seed: r.Seed, External: r.External,
	}
	v.Replicas, v.NATS, v.Faults = len(r.routers), len(r.members), r.faults
	if r.server != nil {
		v.Faults = r.server.faults
	}
	var lost []loss
	var reordered, unexpected, resequenced []offence
	for _, c := range r.consumers {
		expected := r.expect.of(c.name)
		missing := c.missing(expected)
		v.Expected += len(expected)
		v.Lost += len(missing)
		for _, x := range missing {
			lost = append(lost, loss{c.name, x})
		}
		unexpected = append(unexpected, c.unexpected(expected)...)
		c.mu.Lock()
		v.Duplicates += c.duplicates
		reordered = append(reordered, c.reordered...)
		resequenced = append(resequenced, c.resequenced...)
		c.mu.Unlock()
	}
	v.Delivered = v.Expected - v.Lost
	v.Reordered, v.Unexpected, v.Resequenced = len(reordered), len(unexpected), len(resequenced)
	v.tellOffences("reordered", reordered)
	v.tellOffences("unexpected", unexpected)
	v.tellOffences("resequenced", resequenced)
	r.tellLosses(ctx, v, lost)
	if gone, err := r.metric(ctx, "tripline_lost_total"); err != nil {
		v.fail(fmt.Errorf("asking for the metrics: %w", err))
	} else if gone > 0 {
		v.fail(fmt.Errorf("the router says that %.0f locations were gone before they were judged", gone))
	}
	if v.Lost == 0 {
		v.fail(r.settledDown(ctx))
	}
	return v, nil
}

// settledDown says what is wrong with the router after all was delivered.
func (r *run) settledDown(ctx context.Context) error {
	for _, t := range r.routers {
		if err := t.ready(ctx); err != nil {
			return fmt.Errorf("all is delivered, and %s is not ready: %w", t.name, err)
		}
	}
	var givingUp []string
	for _, c := range r.consumers {
		if c.givesUp {
			givingUp = append(givingUp, c.name)
		}
	}
	dead, err := r.metric(ctx, "tripline_dead_letters_total", givingUp...)
	if err == nil && dead > 0 {
		err = fmt.Errorf("%.0f triggers became dead letters", dead)
	}
	return err
}

func (v *verdict) tellOffences(kind string, all []offence) {
	slices.SortFunc(all, func(a, b offence) int { return cmp.Compare(a.at, b.at) })
	for i, o := range all {
		if i == accountMost {
			v.account = append(v.account, fmt.Sprintf("%s: %d more", kind, len(all)-i))
			break
		}
		v.account = append(v.account, kind+": "+o.String())
	}
}

// loss is a trigger that did not reach a consumer.
type loss struct {
	consumer string
	*expectation
}

// tellLosses says of the first losses where each was seen last.
func (r *run) tellLosses(ctx context.Context, v *verdict, lost []loss) {
	slices.SortFunc(lost, func(a, b loss) int { return cmp.Compare(a.published, b.published) })
	if len(lost) == 0 {
		return
	}
	seen, err := r.search(ctx)
	v.fail(err)
	for i, l := range lost {
		if i == accountMost {
			v.account = append(v.account, fmt.Sprintf("lost: %d more", len(lost)-i))
			break
		}
		text := fmt.Sprintf("lost: %s, %v", l.consumer, l.expectation)
		if p, ok := r.fleet.placement(l.message); ok {
			text += fmt.Sprintf(", stored as %d at %.1f s", p.sequence, p.at.Seconds())
		}
		v.account = append(v.account, text+", "+seen.where(l))
	}
}

func (v *verdict) print(out io.Writer) {
	for _, line := range v.account {
		fmt.Fprintln(out, line)
	}
	for _, p := range v.Problems {
		fmt.Fprintln(out, "problem:", p)
	}
	fmt.Fprintf(out, "seed %d: %d kills in %.1f s: expected %d, delivered %d, lost %d, reordered %d, unexpected %d, duplicates %d\n",
		v.Seed, v.Kills, v.Seconds, v.Expected, v.Delivered, v.Lost, v.Reordered, v.Unexpected, v.Duplicates)
}

func (v *verdict) write(path string) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}
