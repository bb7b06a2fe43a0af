// Command recovery plays a consumer's outage against several circuit breakers
// and shows, side by side, how each lets the consumer come back.
//
//	go run ./bench/recovery [--seeds N] [--json FILE] [--svg FILE]
//	go run ./bench/recovery --live
//
// Everything happens in virtual time and is seeded: the same command prints
// the same figures. --live plays the headline in real time, through the real
// router. docs/RECOVERY.md describes the model.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

func main() {
	seeds := flag.Int("seeds", 200, "seeds for each scenario and policy; the peers get a quarter of them")
	jsonFile := flag.String("json", "", "write the figures to this `file`")
	svgFile := flag.String("svg", "", "draw the headline scenario into this `file`")
	peers := flag.Bool("peers", true, "play sony/gobreaker and failsafe-go as well")
	live := flag.Bool("live", false, "play the headline scenario in real time, through the real router, and nothing else")
	child := flag.String("child", "", "internal: play the peers only, write their figures to this `file`")
	flag.Parse()
	var err error
	if *child != "" {
		playPeers(*child, *seeds) // does not return
	}
	if *live {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		err = playLive(ctx, named(headline), liveAfter, os.Stdout, lineTo(os.Stderr))
	} else {
		err = recovery(os.Stdout, *seeds, *peers, *jsonFile, *svgFile)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "recovery:", err)
		os.Exit(1)
	}
}

// recovery runs the whole study and writes what was asked for.
func recovery(w io.Writer, seeds int, peers bool, jsonFile, svgFile string) error {
	if seeds < 1 {
		return fmt.Errorf("--seeds %d: at least one is needed", seeds)
	}
	began := time.Now()
	all := scenarios()
	fmt.Fprintf(w, "Playing %d scenarios with %d policies and %d seeds each", len(all), len(own(disciplines())), seeds)
	if peers {
		fmt.Fprintf(w, "; two libraries, which are slower to play, get %d of the seeds", max(1, seeds/4))
	}
	fmt.Fprint(w, ".\n")
	var others func() (*Result, error)
	if peers {
		var err error
		if others, err = startPeers(max(1, seeds/4)); err != nil {
			return err
		}
	}
	res := study(all, own(disciplines()), seeds, progressTo(os.Stderr))
	if others != nil {
		theirs, err := others()
		if err != nil {
			return err
		}
		for i := range res.Scenarios {
			res.Scenarios[i].Policies = append(res.Scenarios[i].Policies, theirs.Scenarios[i].Policies...)
		}
	}
	writeTables(w, res)
	fmt.Fprintf(w, "\n%d runs in %.0f s.\n", len(all)*len(own(disciplines()))*seeds, time.Since(began).Seconds())
	if jsonFile != "" {
		data, err := json.MarshalIndent(res, "", "  ")
		if err != nil {
			return fmt.Errorf("encoding the figures: %w", err)
		}
		if err := os.WriteFile(jsonFile, append(data, '\n'), 0o644); err != nil {
			return fmt.Errorf("writing the figures: %w", err)
		}
	}
	if svgFile != "" {
		if err := os.WriteFile(svgFile, picture(), 0o644); err != nil {
			return fmt.Errorf("writing the picture: %w", err)
		}
	}
	return nil
}

// progressTo returns a progress line, if w is a terminal.
func progressTo(w *os.File) func(done, of int) {
	if !terminal(w) {
		return func(int, int) {}
	}
	return func(done, of int) {
		fmt.Fprintf(w, "\r%d of %d seeds ", done, of)
		if done == of {
			fmt.Fprint(w, "\r\033[K")
		}
	}
}

// lineTo returns a function that shows a line of progress: over the last one
// on a terminal, else below it, every tenth. "" ends it.
func lineTo(w *os.File) func(string) {
	if terminal(w) {
		return func(text string) { fmt.Fprintf(w, "\r\033[K%s", text) }
	}
	n := 0
	return func(text string) {
		if n++; text != "" && n%10 == 1 {
			fmt.Fprintln(w, text)
		}
	}
}

func terminal(w *os.File) bool {
	info, err := w.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
