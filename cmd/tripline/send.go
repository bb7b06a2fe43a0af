package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tripline/tripline/internal/natsconn"
	"github.com/tripline/tripline/router"
)

type sendCmd struct {
	Device string `arg:"" help:"Device id; dots separate the parts that the subject's wildcards stand for."`
	Lat    number `arg:"" help:"Latitude, degrees."`
	Lon    number `arg:"" help:"Longitude, degrees."`

	TS       string        `name:"ts" placeholder:"TIME" help:"When the device was there: RFC 3339, or unix seconds or milliseconds. Default: now."`
	Accuracy *number       `placeholder:"M" help:"Radius of uncertainty, metres."`
	Speed    *number       `placeholder:"M/S" help:"Speed, metres per second."`
	Heading  *number       `placeholder:"DEG" help:"Heading, degrees clockwise from north."`
	Alt      *number       `placeholder:"M" help:"Altitude, metres."`
	Props    string        `placeholder:"JSON" help:"Further properties, a JSON object."`
	Timeout  time.Duration `default:"5s" help:"How long to wait for the answer."`
	JSON     bool          `name:"json" help:"Print the answer as JSON."`

	connection
}

// Help is shown by --help.
func (*sendCmd) Help() string {
	return `The location is stored, judged, and answered with the number of transitions
that it made. Exit code 1 means that it was refused.

Examples:

  tripline send van-1 52.3791 4.9003
  tripline send van-1 52.3791 4.9003 --ts 2026-01-31T09:30:00Z --accuracy 8`
}

// Run sends the location as a request.
func (c *sendCmd) Run(s streams) error {
	payload, err := c.payload()
	if err != nil {
		return usageError{err}
	}
	if strings.ContainsAny(c.Device, " \t\r\n*>") || strings.Contains("."+c.Device+".", "..") {
		return usageError{fmt.Errorf("device %q: a device id has parts with single dots between, without white space, * and >", c.Device)}
	}
	if c.Timeout <= 0 {
		return usageError{errors.New("--timeout is longer than 0s")}
	}
	nc, err := c.dial()
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(s.ctx, c.Timeout)
	defer cancel()
	subject := c.Namespace + ".submit." + c.Device
	msg, err := nc.RequestWithContext(ctx, subject, payload)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("nobody listens on %s at %s: start tripline run there, or correct --server or --namespace", subject, natsconn.Redact(c.Server))
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %v: the location may have been stored; look at the service's log and at its /readyz", c.Timeout)
	case err != nil:
		return fmt.Errorf("sending the location: %w", err)
	}
	return c.told(s, msg.Data)
}

// payload is the location as JSON.
func (c *sendCmd) payload() ([]byte, error) {
	p := struct {
		Lat      number          `json:"lat"`
		Lon      number          `json:"lon"`
		TS       any             `json:"ts,omitempty"`
		Accuracy *number         `json:"accuracy,omitempty"`
		Speed    *number         `json:"speed,omitempty"`
		Heading  *number         `json:"heading,omitempty"`
		Alt      *number         `json:"alt,omitempty"`
		Props    json.RawMessage `json:"props,omitempty"`
	}{Lat: c.Lat, Lon: c.Lon, Accuracy: c.Accuracy, Speed: c.Speed, Heading: c.Heading, Alt: c.Alt}
	if c.TS != "" {
		p.TS = c.TS
		if _, err := strconv.ParseFloat(c.TS, 64); err == nil {
			p.TS = json.RawMessage(c.TS)
		}
	}
	if c.Props != "" {
		if !json.Valid([]byte(c.Props)) {
			return nil, errors.New(`--props is no JSON object, as in '{"driver":"ann"}'`)
		}
		p.Props = json.RawMessage(c.Props)
	}
	return json.Marshal(p)
}

// number is a decimal number on the command line.
type number float64

// UnmarshalText allows for the space of [spaced].
func (n *number) UnmarshalText(text []byte) error {
	f, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
	if err != nil || f-f != 0 {
		return fmt.Errorf("%q is no number", strings.TrimSpace(string(text)))
	}
	*n = number(f)
	return nil
}

// spaced puts a space before the negative numbers of a send command, so that
// they aren't taken for flags.
func spaced(args []string) []string {
	if len(args) == 0 || args[0] != "send" {
		return args
	}
	out := slices.Clone(args)
	for i, a := range out {
		if len(a) > 1 && a[0] == '-' && (a[1] == '.' || a[1] >= '0' && a[1] <= '9') {
			out[i] = " " + a
		}
	}
	return out
}

// told prints the answer.
func (c *sendCmd) told(s streams, data []byte) error {
	var a router.Answer
	if err := json.Unmarshal(data, &a); err != nil {
		return fmt.Errorf("the answer is not from Tripline: %.200s", data)
	}
	if c.JSON {
		fmt.Fprintf(s.out, "%s\n", data)
		if !a.OK {
			return errTold
		}
		return nil
	}
	if !a.OK {
		return fmt.Errorf("refused (%s): %s", a.Reason, a.Error)
	}
	_, err := fmt.Fprintf(s.out, "ok: stored as %d, %s\n", a.Seq, plural(a.Transitions, "transition"))
	return err
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return thousands(n) + " " + word + "s"
}
