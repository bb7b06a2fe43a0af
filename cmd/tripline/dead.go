package main

import (
	"fmt"
	"net/http"
	"strconv"
)

type deadCmd struct {
	Ls      deadLsCmd      `cmd:"" help:"List dead letters."`
	Show    deadShowCmd    `cmd:"" help:"Show one, with its body."`
	Redrive deadRedriveCmd `cmd:"" help:"Send dead letters again, in their order."`
	Purge   deadPurgeCmd   `cmd:"" help:"Remove dead letters for good."`
}

// Help is shown by --help.
func (*deadCmd) Help() string {
	return `Triggers that were given up on, with the reason. One that is sent again keeps
its id, is marked as redriven, and comes after what has been delivered since.

Examples:

  tripline dead ls dispatch
  tripline dead redrive dispatch --fence depot-north
  tripline dead purge dispatch --older-than 7d --yes`
}

type deadLsCmd struct {
	Consumer string `arg:"" optional:"" help:"Consumer; all without it."`
	lister
}

// Run lists.
func (c *deadLsCmd) Run(s streams) error {
	svc, err := c.service()
	if err != nil {
		return err
	}
	entries, more, err := c.list(s.ctx, svc, c.Consumer, "dead")
	if err != nil {
		return err
	}
	return c.print(s, entries, more, "no dead letters", []string{"DIED", "REASON", "ATTEMPTS", "ERROR"}, func(e entry) []string {
		return []string{ago(*e.Died), e.Reason, strconv.Itoa(e.Attempts), cut(e.Error, 80)}
	})
}

type deadShowCmd struct{ one }

// Run shows one.
func (c *deadShowCmd) Run(s streams) error { return c.show(s, "dead") }

type deadRedriveCmd struct {
	Consumer string  `arg:"" help:"Consumer."`
	Seq      *uint64 `arg:"" optional:"" help:"Only this one, by its seq."`
	narrowed
	operator
}

// Run sends again. It loses nothing, so it does not ask.
func (c *deadRedriveCmd) Run(s streams) error {
	svc, err := c.service()
	if err != nil {
		return err
	}
	r := request{method: http.MethodPost, path: at("consumers", c.Consumer, "dead", "redrive"), query: c.selection()}
	if c.Seq != nil {
		if len(c.query()) > 0 {
			return usageError{fmt.Errorf("a seq and filters exclude each other")}
		}
		r.path, r.query = at("consumers", c.Consumer, "dead", strconv.FormatUint(*c.Seq, 10), "redrive"), nil
	}
	said, raw, err := ask[struct{ Redriven, Elsewhere int }](s.ctx, svc, r)
	if err != nil || c.JSON {
		return orJSON(s, raw, err)
	}
	if _, err = fmt.Fprintf(s.out, "sent %s again\n", plural(said.Redriven, "dead letter")); err != nil {
		return err
	}
	if said.Elsewhere > 0 {
		fmt.Fprintf(s.err, "%s left: their partitions are run by other replicas, which have to be asked too (--admin)\n", plural(said.Elsewhere, "dead letter"))
	}
	return nil
}

type deadPurgeCmd struct {
	Consumer string  `arg:"" help:"Consumer."`
	Seq      *uint64 `arg:"" optional:"" help:"Only this one, by its seq."`
	narrowed
	confirmed
	operator
}

// Run asks, then removes.
func (c *deadPurgeCmd) Run(s streams) error {
	svc, err := c.service()
	if err != nil {
		return err
	}
	r := request{method: http.MethodDelete, path: at("consumers", c.Consumer, "dead"), query: c.selection()}
	what := "all dead letters" + c.String()
	if c.Seq != nil {
		if len(c.query()) > 0 {
			return usageError{fmt.Errorf("a seq and filters exclude each other")}
		}
		r.path, r.query = r.path+at(strconv.FormatUint(*c.Seq, 10)), nil
		what = fmt.Sprintf("dead letter %d", *c.Seq)
	}
	if err := c.confirm(s, fmt.Sprintf("Remove %s of consumer %s?", what, c.Consumer)); err != nil {
		return err
	}
	return purge(s, svc, r, c.JSON, "dead letter")
}
