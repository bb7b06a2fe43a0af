package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tripline/tripline/internal/admin/live"
)

type tailCmd struct {
	Consumer   string `placeholder:"NAME" help:"Only what is addressed to this consumer, and its breaker."`
	Fence      string `placeholder:"ID" help:"Only triggers of this fence."`
	Device     string `placeholder:"ID" help:"Only triggers of this device."`
	Transition string `placeholder:"KIND" help:"Only triggers of this kind: enter, exit, dwell, cross, inside, silent."`
	Count      int    `short:"n" placeholder:"N" help:"End after so many lines."`
	operator
}

// Help is shown by --help.
func (*tailCmd) Help() string {
	return `Prints triggers as they happen, and what the breakers do, until Ctrl-C. It is for
watching: what comes too fast is left out, and counted. With a filter on
triggers, breakers are not shown.

Examples:

  tripline tail
  tripline tail --consumer dispatch --transition enter
  tripline tail --json | jq .device`
}

// Run follows the live stream.
func (c *tailCmd) Run(s streams) error {
	if _, ok := kindNames[c.Transition]; c.Transition != "" && !ok {
		return usageError{fmt.Errorf("--transition %s: the kinds are enter, exit, dwell, cross, inside, silent", c.Transition)}
	}
	svc, err := c.service()
	if err != nil {
		return err
	}
	if err := c.known(s, svc); err != nil {
		return err
	}
	lines := 0
	err = svc.follow(s.ctx, s.err, func(event string, data []byte) error {
		line, err := c.line(s, event, data)
		if err != nil || line == "" {
			return err
		}
		if _, err := fmt.Fprintln(s.out, line); err != nil {
			return err
		}
		if lines++; lines == c.Count {
			return errEnough
		}
		return nil
	})
	if err == errEnough {
		return nil
	}
	return err
}

// known sees that the filters can match something: a slip of the pen would be
// waited for for ever.
func (c *tailCmd) known(s streams, svc *service) error {
	if c.Consumer != "" {
		names, err := consumerNames(s.ctx, svc)
		if err != nil {
			return err
		}
		if !slices.Contains(names, c.Consumer) {
			return fmt.Errorf("no consumer %q", c.Consumer)
		}
	}
	if c.Fence != "" {
		_, err := svc.ask(s.ctx, request{method: http.MethodGet, path: at("fences", c.Fence)})
		if refusal, ok := errors.AsType[statusError](err); ok && refusal.status == http.StatusNotFound {
			fmt.Fprintf(s.err, "tripline: there is no fence %q yet\n", c.Fence)
			return nil
		}
		return err
	}
	return nil
}

// errEnough ends a tail after its count.
var errEnough = fmt.Errorf("enough")

// line is what is printed for an event, "" for nothing.
func (c *tailCmd) line(s streams, event string, data []byte) (string, error) {
	switch event {
	case "trigger":
		var t live.Trigger
		if err := json.Unmarshal(data, &t); err != nil {
			return "", fmt.Errorf("a trigger that can't be read: %w", err)
		}
		if !c.wants(t) {
			return "", nil
		}
		return c.shown(event, data, c.trigger(s, t)), nil
	case "breaker":
		var b live.Breaker
		if err := json.Unmarshal(data, &b); err != nil {
			return "", fmt.Errorf("a breaker's change that can't be read: %w", err)
		}
		if c.Fence+c.Device+c.Transition != "" || c.Consumer != "" && c.Consumer != b.Consumer {
			return "", nil
		}
		return c.shown(event, data, c.breaker(s, b)), nil
	case "dropped":
		var d struct{ Triggers int }
		if json.Unmarshal(data, &d) == nil && d.Triggers > 0 {
			fmt.Fprintf(s.err, "tripline: %s left out, they came too fast\n", plural(d.Triggers, "trigger"))
		}
	}
	return "", nil
}

// shown is the text, or the event as JSON with its name.
func (c *tailCmd) shown(event string, data []byte, text string) string {
	if !c.JSON {
		return text
	}
	return `{"event":"` + event + `",` + strings.TrimPrefix(string(data), "{")
}

func (c *tailCmd) wants(t live.Trigger) bool {
	return (c.Consumer == "" || slices.Contains(t.Consumers, c.Consumer)) &&
		(c.Fence == "" || c.Fence == t.Fence) &&
		(c.Device == "" || c.Device == t.Device) &&
		(c.Transition == "" || c.Transition == t.Transition)
}

func (c *tailCmd) trigger(s streams, t live.Trigger) string {
	looks := map[string]style{"enter": green, "exit": yellow}
	line := fmt.Sprintf("%s  %s  %s", t.At.UTC().Format(time.DateTime),
		paint(s.colour, looks[t.Transition], fmt.Sprintf("%-6s", t.Transition)), printable(t.Device))
	if t.Fence != "" {
		line += "  " + printable(t.Fence)
	}
	if t.Initial {
		line += "  (initial)"
	}
	if t.Reason != "" {
		line += "  (" + t.Reason + ")"
	}
	to := strings.Join(t.Consumers, ", ")
	if to == "" {
		to = "nobody"
	}
	return line + paint(s.colour, faint, "  to "+to)
}

func (c *tailCmd) breaker(s streams, b live.Breaker) string {
	look := yellow
	switch b.To {
	case "open":
		look = red
	case "closed":
		look = green
	}
	line := fmt.Sprintf("%s  %s  %s: %s", b.At.UTC().Format(time.DateTime),
		paint(s.colour, look, fmt.Sprintf("%-6s", strings.ReplaceAll(b.To, "_", " "))), b.Consumer, printable(b.Text))
	if b.Until != nil {
		line += fmt.Sprintf("; next try in %s", short(b.Until.Sub(b.At)))
	}
	return line
}
