package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// nuisance does one thing to the router short of killing it: an operator at
// work, a machine that stands still, an orderly stop. What takes long goes on
// in the background, so that a kill can fall into it.
func (r *run) nuisance(ctx context.Context) error {
	if err := r.pause(ctx, r.between(0, r.Longest/4)); err != nil {
		return err
	}
	c := r.consumers[r.rng.IntN(len(r.consumers))]
	switch r.rng.IntN(6) {
	case 0: // still, as after a long pause of the machine
		still := r.between(100*time.Millisecond, 2*time.Second)
		if len(r.routers) > 1 && r.rng.IntN(3) == 0 {
			still = r.between(standsStill*2/3, standsStill)
		}
		r.say("nuisance: the router stands still for %d ms", still.Milliseconds())
		r.router.suspend(true)
		err := r.pause(ctx, still)
		r.router.suspend(false)
		return err
	case 1:
		r.say("nuisance: the router is stopped in order and started again")
		if err := r.router.awaitReady(ctx); err != nil {
			return err
		}
		r.stops++
		if err := r.router.stop(stopWithin); err != nil {
			// It can't save its progress where no server answers, nor park
			// what a full queue does not take, and says so.
			if !r.External && !strings.Contains(err.Error(), "are not parked") {
				return err
			}
			r.say("not in order: %v", lastLine(err))
		}
		return r.router.start()
	case 2:
		r.say("nuisance: %s is configured anew", c.name)
		c.concurrency = 2 + r.rng.IntN(15)
		if err := r.router.configure(r.consumers); err != nil {
			return err
		}
		r.behind(ctx, r.router, "/api/v1/reload")
	case 3:
		r.say("nuisance: an operator opens the breaker of %s", c.name)
		r.behind(ctx, r.router, "/api/v1/consumers/"+c.name+"/open")
	case 4:
		r.say("nuisance: an operator has %s probed", c.name)
		r.behind(ctx, r.router, "/api/v1/consumers/"+c.name+"/probe")
	case 5:
		r.say("nuisance: an operator pauses the replay of %s", c.name)
		r.behind(ctx, r.router, "/api/v1/consumers/"+c.name+"/pause")
	}
	return nil
}

// behind posts to the router in the background. Whether it works out is
// another matter: it may be killed meanwhile.
func (r *run) behind(ctx context.Context, router *tripline, path string) {
	r.background.Go(func() {
		if status, body, err := router.ask(ctx, http.MethodPost, path); err == nil && status != http.StatusOK {
			r.say("POST %s: %d %s", path, status, body)
		}
	})
}

// resumeAll ends the pauses that operators made.
func (r *run) resumeAll(ctx context.Context) error {
	r.background.Wait()
	for _, t := range r.routers {
		for _, c := range r.consumers {
			status, body, err := t.ask(ctx, http.MethodPost, "/api/v1/consumers/"+c.name+"/resume")
			if err != nil {
				return fmt.Errorf("resuming %s: %w", c.name, err)
			}
			if status != http.StatusOK {
				return fmt.Errorf("resuming %s: %d %s", c.name, status, body)
			}
		}
	}
	return nil
}

// suspend stops the program where it is, or lets it go on.
func (p *process) suspend(still bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := syscall.SIGCONT
	if still {
		s = syscall.SIGSTOP
	}
	if p.cmd != nil {
		p.cmd.Process.Signal(s) // it may have ended
	}
}

func lastLine(err error) string {
	lines := strings.Split(err.Error(), "\n")
	return lines[len(lines)-1]
}
