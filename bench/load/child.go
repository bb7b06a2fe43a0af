package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// roleEnv, if set, makes this program one of the bench's processes.
const roleEnv = "TRIPLINE_LOAD_ROLE"

// endWithin is how long a process may take to end after its input was closed.
const endWithin = 15 * time.Second

// request is a line that a process is sent; it answers each with one line.
type request struct {
	Do  string          `json:"do"`
	Arg json.RawMessage `json:"arg,omitempty"`
}

type response struct {
	Error string          `json:"error,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
}

// operation is something that a process can be asked for.
type operation func(ctx context.Context, arg json.RawMessage) (any, error)

// op adapts a typed function to an operation.
func op[A any](f func(ctx context.Context, arg A) (any, error)) operation {
	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		var arg A
		if len(raw) > 0 {
			if err := json.Unmarshal(raw, &arg); err != nil {
				return nil, fmt.Errorf("reading the argument: %w", err)
			}
		}
		return f(ctx, arg)
	}
}

// role is one of the bench's processes.
type role interface {
	operations() map[string]operation
	close()
}

// roles are all of them. A process ends when its input does, so none outlives
// the bench, however that ends.
func roles() map[string]func() role {
	return map[string]func() role{
		"nats":     func() role { return new(natsRole) },
		"publish":  func() role { return new(publishRole) },
		"plain":    func() role { return new(plainRole) },
		"consumer": func() role { return new(consumerRole) },
		"router":   func() role { return new(routerRole) },
	}
}

// serve is a process's life: it answers requests until there are no more.
func serve(name string, in io.Reader, out io.Writer) error {
	build, ok := roles()[name]
	if !ok {
		return fmt.Errorf("there is no role %q", name)
	}
	r := build()
	defer r.close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ops := r.operations()
	requests, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var q request
		if err := requests.Decode(&q); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("%s: reading a request: %w", name, err)
		}
		var a response
		value, err := ops[q.Do](ctx, q.Arg)
		if err == nil {
			a.Value, err = json.Marshal(value)
		}
		if err != nil {
			a.Error = err.Error()
		}
		if err := answers.Encode(a); err != nil {
			return fmt.Errorf("%s: answering: %w", name, err)
		}
	}
}

// child is a process of the bench, as seen from its parent.
type child struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	mu   sync.Mutex // one request at a time
}

// spawn starts this program in a role.
func spawn(name string, log io.Writer) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	c := &child{name: name, cmd: exec.Command(self)}
	c.cmd.Env = append(os.Environ(), roleEnv+"="+name, "NATS_URL=")
	c.cmd.Stderr = log
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("starting the %s process: %w", name, err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the %s process: %w", name, err)
	}
	c.out = bufio.NewReaderSize(out, 1<<20)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the %s process: %w", name, err)
	}
	return c, nil
}

// call asks the process for something. If ctx ends first, the process is
// killed: what it was doing has no other end.
func (c *child) call(ctx context.Context, do string, arg, result any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { _ = c.cmd.Process.Kill() })
	defer stop()
	err := c.exchange(do, arg, result)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%s process: %s: %w", c.name, do, err)
	}
	return nil
}

func (c *child) exchange(do string, arg, result any) error {
	raw, err := json.Marshal(arg)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(c.in).Encode(request{Do: do, Arg: raw}); err != nil {
		return err
	}
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("it ended: %w", err)
	}
	var a response
	if err := json.Unmarshal(line, &a); err != nil {
		return err
	}
	if a.Error != "" {
		return errors.New(a.Error)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(a.Value, result)
}

// end closes the process's input and waits for its end; a process that
// doesn't is killed.
func (c *child) end() {
	_ = c.in.Close()
	kill := time.AfterFunc(endWithin, func() { _ = c.cmd.Process.Kill() })
	defer kill.Stop()
	_ = c.cmd.Wait() // how it ended has been told through what it answered
}
