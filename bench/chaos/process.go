package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a program that the run starts, kills and starts again.
type process struct {
	name string
	path string
	args []string
	log  *os.File // gets its output
	// forgiven says that the program may end by itself at the moment, as one
	// that can't start; then it is started again, as by whoever supervises
	// it. nil: never.
	forgiven func() bool
	// started is told of each start. It may be nil.
	started func()

	mu      sync.Mutex // guards all below
	cmd     *exec.Cmd
	ended   chan struct{} // closed when cmd has ended
	wanted  bool          // that it ends
	failed  chan error    // gets a value when it ends by itself
	stopped bool          // it is not started again
}

func newProcess(name, log, path string, args ...string) (*process, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the log of %s: %w", name, err)
	}
	return &process{name: name, path: path, args: args, log: f, failed: make(chan error, 1)}, nil
}

// again is after what time a program is started again that ended by itself.
const again = 200 * time.Millisecond

// start runs the program, unless it is running.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return errors.New(p.name + " was stopped for good")
	}
	if p.cmd != nil && p.cmd.ProcessState == nil {
		return nil
	}
	cmd := exec.Command(p.path, p.args...)
	cmd.Stdout, cmd.Stderr = p.log, p.log
	cmd.Env = append(os.Environ(), "NATS_URL=")
	cmd.SysProcAttr = orphanAttr()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	if p.started != nil {
		p.started()
	}
	p.cmd, p.wanted, p.ended = cmd, false, make(chan struct{})
	go p.await(cmd, p.ended)
	return nil
}

// await notices that the program has ended.
func (p *process) await(cmd *exec.Cmd, ended chan struct{}) {
	state, err := cmd.Process.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	cmd.ProcessState = state // start and signal read it under the lock
	defer close(ended)
	switch {
	case p.wanted:
	case err == nil && p.forgiven != nil && p.forgiven():
		time.AfterFunc(again, func() { p.start() })
	default:
		select {
		case p.failed <- fmt.Errorf("%s ended by itself: %v\n%s", p.name, state, tail(p.log.Name(), 20)):
		default:
		}
	}
}

// signal sends a signal that ends the program, and waits until it has.
func (p *process) signal(s os.Signal, within time.Duration) error {
	p.mu.Lock()
	cmd, ended := p.cmd, p.ended
	p.wanted = true
	p.mu.Unlock()
	if cmd == nil {
		return nil
	}
	cmd.Process.Signal(s) // it may have ended
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-ended:
		return nil
	case <-timer.C:
		cmd.Process.Kill()
		<-ended
		return fmt.Errorf("%s did not end within %v of %v", p.name, within, s)
	}
}

// kill ends the program as a power button would.
func (p *process) kill() { p.signal(syscall.SIGKILL, time.Minute) }

// stop ends the program in order.
func (p *process) stop(within time.Duration) error {
	if err := p.signal(syscall.SIGTERM, within); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("%s ended with exit code %d when it was stopped\n%s", p.name, code, tail(p.log.Name(), 20))
	}
	return nil
}

// close kills the program and keeps it from being started again.
func (p *process) close() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.kill()
	p.log.Close()
}

// tail returns the last lines of a file.
func tail(path string, lines int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// build makes a program of a package.
func build(ctx context.Context, pkg, path string, race bool) error {
	args := []string{"build", "-o", path}
	if race {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// freeAddress returns a loopback address that nothing listens on.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
