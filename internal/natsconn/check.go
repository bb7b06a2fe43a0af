package natsconn

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// MinVersion is the oldest server that has all that is used: atomic batch
	// publishing and a partition over the whole subject came with 2.12.
	MinVersion = "2.12.0"
	// minAPILevel is the level of JetStream's API of that version.
	minAPILevel = 2
	// MinPayload is what a server must let through, in bytes: a trigger
	// carries the properties of a fix and of a fence.
	MinPayload = 256 << 10
)

// Check holds a connected server against what the router needs, and says all
// that is missing and what to change.
func Check(ctx context.Context, nc *nats.Conn) error {
	var errs []error
	if v := nc.ConnectedServerVersion(); olderThan(v, MinVersion) {
		errs = append(errs, fmt.Errorf("the server is version %s and has to be %s or later: upgrade nats-server", v, MinVersion))
	}
	if n := nc.MaxPayload(); n < MinPayload {
		errs = append(errs, fmt.Errorf("the server's max_payload is %d bytes and has to be at least %d: raise it in its configuration", n, MinPayload))
	}
	if err := checkJetStream(ctx, nc); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("nats at %s: %w", nc.ConnectedUrlRedacted(), err)
	}
	return nil
}

func checkJetStream(ctx context.Context, nc *nats.Conn) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	info, err := js.AccountInfo(ctx)
	switch {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, nats.ErrNoResponders):
		return errors.New("JetStream is not enabled: start the server with -js and a -sd directory, or set jetstream in its configuration")
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return errors.New("JetStream is not enabled for this account: enable it in the account's configuration or JWT")
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("JetStream did not answer: it has no leader yet, or this user may not publish to $JS.API.> and subscribe to its inbox")
	case err != nil:
		return fmt.Errorf("asking JetStream for its limits: %w", err)
	}
	if info.API.Level < minAPILevel { // the leader of a cluster may be older than the server we talk to
		return fmt.Errorf("JetStream's API has level %d and needs %d: upgrade every nats-server of the cluster to %s or later", info.API.Level, minAPILevel, MinVersion)
	}
	if info.Limits.MaxStore == 0 {
		return errors.New("this account may store nothing in files: raise its JetStream storage limit")
	}
	return nil
}

// olderThan compares versions such as 2.15.2 or 2.12.0-preview.1 by their
// numbers. What is no version is not older: it can't be told.
func olderThan(v, than string) bool {
	have, want := versionNumbers(v), versionNumbers(than)
	for i := range have {
		if have[i] != want[i] {
			return have[i] >= 0 && have[i] < want[i]
		}
	}
	return false
}

func versionNumbers(v string) [3]int {
	v, _, _ = strings.Cut(strings.TrimPrefix(v, "v"), "-")
	var n [3]int
	for i, part := range strings.SplitN(v, ".", 3) {
		number, err := strconv.Atoi(part)
		if err != nil {
			return [3]int{-1, -1, -1}
		}
		n[i] = number
	}
	return n
}
