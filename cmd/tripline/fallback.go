package main

import (
	"fmt"
	"net/http"
	"strconv"
)

type fallbackCmd struct {
	Ls      fallbackLsCmd      `cmd:"" help:"List parked triggers."`
	Show    fallbackShowCmd    `cmd:"" help:"Show one, with its body."`
	Purge   fallbackPurgeCmd   `cmd:"" help:"Remove parked triggers for good."`
	Orphans fallbackOrphansCmd `cmd:"" help:"List what is left of consumers that are not configured any more."`
}

// Help is shown by --help.
func (*fallbackCmd) Help() string {
	return `What waits for a consumer that can't take it now. It is delivered by itself once
the consumer is well.

Examples:

  tripline fallback ls dispatch --older-than 1h
  tripline fallback purge dispatch --device van-1
  tripline fallback purge old-consumer --orphan --yes`
}

type fallbackLsCmd struct {
	Consumer string `arg:"" optional:"" help:"Consumer; all without it."`
	lister
}

// Run lists.
func (c *fallbackLsCmd) Run(s streams) error {
	svc, err := c.service()
	if err != nil {
		return err
	}
	entries, more, err := c.list(s.ctx, svc, c.Consumer, "fallback")
	if err != nil {
		return err
	}
	return c.print(s, entries, more, "nothing is parked", []string{"PARKED", "REASON", "PRIORITY"}, func(e entry) []string {
		return []string{ago(*e.Parked), e.Reason, e.Priority}
	})
}

type fallbackShowCmd struct{ one }

// Run shows one.
func (c *fallbackShowCmd) Run(s streams) error { return c.show(s, "fallback") }

type fallbackPurgeCmd struct {
	Consumer string  `arg:"" help:"Consumer."`
	Seq      *uint64 `arg:"" optional:"" help:"Only this one, by its seq."`
	Orphan   bool    `help:"The consumer is not configured any more: remove all that is left of it."`
	narrowed
	confirmed
	operator
}

// Run asks, then removes.
func (c *fallbackPurgeCmd) Run(s streams) error {
	svc, err := c.service()
	if err != nil {
		return err
	}
	if len(c.query()) > 0 && (c.Orphan || c.Seq != nil) || c.Orphan && c.Seq != nil {
		return usageError{fmt.Errorf("a seq, --orphan and filters exclude each other")}
	}
	if c.Orphan {
		return c.purgeOrphan(s, svc)
	}
	r := request{method: http.MethodDelete, path: at("consumers", c.Consumer, "fallback"), query: c.selection()}
	what := "all parked triggers" + c.String()
	if c.Seq != nil {
		r.path, r.query = r.path+at(strconv.FormatUint(*c.Seq, 10)), nil
		what = fmt.Sprintf("parked trigger %d", *c.Seq)
	}
	if err := c.confirm(s, fmt.Sprintf("Remove %s of consumer %s?", what, c.Consumer)); err != nil {
		return err
	}
	return purge(s, svc, r, c.JSON, "parked trigger")
}

func (c *fallbackPurgeCmd) purgeOrphan(s streams, svc *service) error {
	if err := c.confirm(s, fmt.Sprintf("Remove all that is left of consumer %s?", c.Consumer)); err != nil {
		return err
	}
	o, raw, err := ask[orphan](s.ctx, svc, request{method: http.MethodDelete, path: at("orphans", c.Consumer)})
	if err != nil || c.JSON {
		return orJSON(s, raw, err)
	}
	_, err = fmt.Fprintf(s.out, "removed %s and %s\n", plural(o.Items, "parked trigger"), plural(o.Dead, "dead letter"))
	return err
}

// orphan is what is left of a consumer.
type orphan struct {
	Consumer           string
	Items, Bytes, Dead int
}

type fallbackOrphansCmd struct{ operator }

// Run lists them.
func (c *fallbackOrphansCmd) Run(s streams) error {
	svc, err := c.service()
	if err != nil {
		return err
	}
	list, raw, err := get[struct{ Orphans []orphan }](s.ctx, svc, "/orphans", nil)
	if err != nil || c.JSON {
		return orJSON(s, raw, err)
	}
	if len(list.Orphans) == 0 {
		_, err := fmt.Fprintln(s.out, "no orphans: every fallback queue has its consumer")
		return err
	}
	t := newTable(s.colour, "CONSUMER", ">PARKED", ">BYTES", ">DEAD")
	for _, o := range list.Orphans {
		t.add(o.Consumer, thousands(o.Items), thousands(o.Bytes), thousands(o.Dead))
	}
	return t.write(s.out)
}

// purge sends the request of a removal and tells how much it removed.
func purge(s streams, svc *service, r request, asJSON bool, what string) error {
	said, raw, err := ask[struct{ Purged int }](s.ctx, svc, r)
	if err != nil || asJSON {
		return orJSON(s, raw, err)
	}
	_, err = fmt.Fprintf(s.out, "removed %s\n", plural(said.Purged, what))
	return err
}

// orJSON returns the error, or else prints an answer.
func orJSON(s streams, raw []byte, err error) error {
	if err != nil {
		return err
	}
	return printJSON(s.out, raw)
}
