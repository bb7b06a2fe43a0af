package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/tripline/tripline/internal/admin/live"
)

type consumersCmd struct {
	Name  string        `arg:"" optional:"" help:"Only this consumer, with its last errors."`
	Watch bool          `short:"w" help:"Show it anew, until Ctrl-C."`
	Every time.Duration `default:"1s" help:"How often, with --watch."`
	operator
}

// Help is shown by --help.
func (*consumersCmd) Help() string {
	return `Shows each consumer's breaker with its reason, P99 against the limit, what is
parked and when that will be gone, and what is delivered per second.

Examples:

  tripline consumers
  tripline consumers dispatch
  tripline consumers --watch`
}

// Run shows the table once, or again and again.
func (c *consumersCmd) Run(s streams) error {
	svc, err := c.service()
	if err != nil {
		return err
	}
	if !c.Watch {
		text, err := c.text(s.ctx, s, svc)
		if err != nil {
			return err
		}
		_, err = io.WriteString(s.out, text)
		return err
	}
	if c.Every < 100*time.Millisecond {
		return usageError{errors.New("--every is at least 100ms")}
	}
	return c.watch(s, svc)
}

// The sequences that redraw a terminal: the screen is not cleared before the
// new text is there, so nothing flickers.
const (
	cursorHome = "\x1b[H"
	clearLine  = "\x1b[K"
	clearRest  = "\x1b[J"
	clearAll   = "\x1b[2J"
)

// watch shows the table until Ctrl-C. A service that is away for a while is
// told, and waited for.
func (c *consumersCmd) watch(s streams, svc *service) error {
	ticker := time.NewTicker(c.Every)
	defer ticker.Stop()
	redraw := s.outTerminal && !c.JSON
	if redraw {
		io.WriteString(s.out, clearAll)
	}
	for first := true; ; first = false {
		text, err := c.text(s.ctx, s, svc)
		switch {
		case s.ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		case err != nil && !redraw:
			fmt.Fprintf(s.err, "tripline: %v\n", err)
		case err != nil:
			text = printable(err.Error()) + "\n"
		}
		if redraw {
			head := fmt.Sprintf("%s  %s, every %v; Ctrl-C ends it\n\n", time.Now().Format(time.TimeOnly), svc.base, c.Every)
			text = cursorHome + strings.ReplaceAll(head+text, "\n", clearLine+"\n") + clearRest
		}
		if _, err := io.WriteString(s.out, text); err != nil {
			return err
		}
		select {
		case <-s.ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// text is what is shown at the moment.
func (c *consumersCmd) text(ctx context.Context, s streams, svc *service) (string, error) {
	list, raw, err := get[struct{ Consumers []live.Consumer }](ctx, svc, "/consumers", nil)
	if err != nil {
		return "", err
	}
	shown := list.Consumers
	if c.Name != "" {
		shown = nil
		for _, k := range list.Consumers {
			if k.Name == c.Name {
				shown = append(shown, k)
			}
		}
		if len(shown) == 0 {
			return "", fmt.Errorf("no consumer %q", c.Name)
		}
	}
	var b strings.Builder
	switch {
	case c.JSON && c.Watch: // one line each time
		b.Write(raw)
		b.WriteString("\n")
	case c.JSON:
		err = printJSON(&b, raw)
	case len(shown) == 0:
		b.WriteString("no consumers\n")
	default:
		err = consumerTable(s.colour, shown).write(&b)
		if c.Name != "" {
			writeErrors(&b, shown[0])
		}
	}
	return b.String(), err
}

func consumerTable(colour bool, list []live.Consumer) *table {
	t := newTable(colour, "CONSUMER", "STATE", ">P99/LIMIT", ">DELIVERED/S", ">BACKLOG", ">OLDEST", ">ETA", ">DEAD", "REASON")
	for _, k := range list {
		state, look := stateOf(k)
		p99 := "-"
		if k.Samples > 0 {
			p99 = milliseconds(k.P99MS)
		}
		oldest, eta := "-", "-"
		if k.Backlog.Items > 0 {
			oldest = short(time.Duration(k.Backlog.OldestS * float64(time.Second)))
			if k.Backlog.ETAS != nil {
				eta = short(time.Duration(*k.Backlog.ETAS * float64(time.Second)))
			}
		}
		t.addCells(
			cell{k.Name, plain}, cell{state, look},
			cell{p99 + "/" + milliseconds(k.P99LimitMS), plain},
			cell{strconv.FormatFloat(k.DeliveredPerS, 'f', 1, 64), plain},
			cell{thousands(k.Backlog.Items), plain}, cell{oldest, plain}, cell{eta, plain},
			cell{thousands(int(k.DeadTotal)), plain}, cell{reasonOf(k), faint},
		)
	}
	return t
}

// stateOf is the one word that says most of a consumer's state.
func stateOf(k live.Consumer) (string, style) {
	switch {
	case k.Blocked:
		return "blocked", red
	case k.Disabled:
		return "disabled", red
	case k.State == "open" && k.OpenUntil != nil:
		return "open " + short(time.Until(*k.OpenUntil)), red
	case k.State == "open":
		return "open", red
	case k.State == "half_open":
		return fmt.Sprintf("recovering %d/%d", k.Successes, k.SuccessesNeeded), yellow
	case k.Paused:
		return "paused", yellow
	case k.Backlog.Items > 0:
		return "replaying", yellow
	}
	return "closed", green
}

func reasonOf(k live.Consumer) string {
	switch {
	case k.Blocked:
		return "its full queue holds everything up"
	case k.Disabled:
		return "it answered 410 Gone: off until a reload"
	case k.State == "closed" && failing(k):
		return "failing: " + cut(k.LastErrors[0].Text, 100)
	case k.State == "closed" && k.RampWindow > 0:
		return fmt.Sprintf("ramp: %d of %d calls at once", k.RampWindow, k.Concurrency)
	case k.State == "closed":
		return ""
	case k.AliveButSlow:
		return fmt.Sprintf("alive but slow: raise breaker.p99 above %s", milliseconds(k.P50MS))
	}
	return k.Reason
}

// failing says that a consumer takes nothing of what is parked for it, though
// too few calls are made for its breaker to judge by.
func failing(k live.Consumer) bool {
	return k.Backlog.Items > 0 && k.DeliveredPerS == 0 && len(k.LastErrors) > 0 && time.Since(k.LastErrors[0].At) < time.Minute
}

func writeErrors(out io.Writer, k live.Consumer) {
	fmt.Fprintf(out, "\n%s %s\n", k.Sink, printable(k.Target))
	if len(k.LastErrors) == 0 {
		fmt.Fprintln(out, "no errors since the start")
		return
	}
	fmt.Fprintln(out, "last errors:")
	for _, e := range k.LastErrors {
		fmt.Fprintf(out, "  %s  %s\n", stamp(e.At), printable(e.Text))
	}
}

func milliseconds(ms float64) string {
	if ms >= 10_000 {
		return strconv.FormatFloat(ms/1000, 'f', 1, 64) + "s"
	}
	if ms >= 10 || ms == float64(int(ms)) {
		return strconv.FormatFloat(ms, 'f', 0, 64) + "ms"
	}
	return strconv.FormatFloat(ms, 'f', 1, 64) + "ms"
}
