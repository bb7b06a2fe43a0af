package live

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// What a page that has just been opened is told of the time before. The
// timeline on the page is as long.
const (
	remember    = 5 * time.Minute
	sampleEvery = 5 * time.Second
	maxSamples  = int(remember / sampleEvery)
	// A breaker that trips at every probe changes twice per open window, of
	// which the longest are reached within half a minute.
	maxChanges = 128
	maxProbes  = 256
)

// memory is what each consumer went through lately. A consumer that is no
// more takes its part of it along.
type memory struct {
	// mu is held for a note in the memory and in what waits for the clients,
	// so that each note reaches a client either as history or as an event.
	mu     sync.Mutex
	byName map[string]*past
}

// past is what is remembered of one consumer.
type past struct {
	since   time.Time // when the memory begins
	changes ring[Breaker]
	probes  ring[Probe]
	p99     ring[Sample]
}

// of is a consumer's past, which may begin now.
func (m *memory) of(consumer string, now time.Time) *past {
	p := m.byName[consumer]
	if p == nil {
		p = &past{
			since:   now,
			changes: ring[Breaker]{limit: maxChanges},
			probes:  ring[Probe]{limit: maxProbes},
			p99:     ring[Sample]{limit: maxSamples},
		}
		m.byName[consumer] = p
	}
	return p
}

// sample notes the P99 of each consumer of the list, now and then, and
// forgets consumers that aren't in it.
func (m *memory) sample(list []Consumer, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	there := make(map[string]bool, len(list))
	for i := range list {
		c := &list[i]
		there[c.Name] = true
		p := m.of(c.Name, now)
		if last := p.p99.newest(); last == nil || now.Sub(last.At) >= sampleEvery {
			p.p99.push(sampleOf(c, now))
		}
	}
	for name := range m.byName {
		if !there[name] {
			delete(m.byName, name)
		}
	}
}

func sampleOf(c *Consumer, now time.Time) Sample {
	s := Sample{At: now}
	if c.Samples > 0 {
		ms := c.P99MS
		s.MS = &ms
	}
	return s
}

// histories tells the past of every consumer, by name.
func (m *memory) histories(now time.Time) []History {
	var list []History
	for name, p := range m.byName {
		list = append(list, p.history(name, now))
	}
	slices.SortFunc(list, func(a, b History) int { return strings.Compare(a.Consumer, b.Consumer) })
	return list
}

func (p *past) history(consumer string, now time.Time) History {
	start := now.Add(-remember)
	h := History{
		Consumer: consumer, From: p.since,
		Changes: p.changes.where(func(b Breaker) bool { return b.At.After(start) }),
		Probes:  p.probes.where(func(b Probe) bool { return b.At.After(start) }),
		P99:     p.p99.where(func(s Sample) bool { return s.At.After(start) }),
	}
	if p.changes.dropped > 0 {
		h.From = p.changes.oldest().At // nobody knows what it was before
	}
	if h.From.Before(start) {
		h.From = start
	}
	return h
}
