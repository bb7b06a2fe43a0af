package natsconn

import (
	"errors"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// remedies says, by JetStream's error code, what an operator can do where the
// server's own words only name a limit.
var remedies = map[jetstream.ErrorCode]string{
	10002: "the account may store no more: raise its JetStream storage limit, or lower nats.max_store",
	10005: "the cluster has too few servers with JetStream, or none with that much room: lower nats.replicas, or add servers",
	10023: "the server has no room left for JetStream: raise max_file_store in its configuration, or lower nats.max_store",
	10026: "raise the account's limit of consumers (max_consumers): Tripline needs one for each partition and one more",
	10027: "raise the account's limit of streams (max_streams), or remove some: Tripline needs one for each consumer and up to five more",
	10047: "the account or the server has no room for what this stream reserves: raise the account's storage limit (max_file) or the server's (max_file_store; of the embedded one nats.max_store), or lower nats.max_store so that less is reserved",
	10074: "nats.replicas needs a cluster: set it to 1 for a single server",
	10120: "the account has no JetStream limits for this number of replicas: add them to its JWT, or change nats.replicas",
	10122: "the account bounds how large a stream may be (max_stream_bytes): raise that, or lower nats.max_store",
}

// Explain returns an error that says what is behind an error of NATS, and what
// to do, where that doesn't say so itself. Others, and nil, come back as they
// are.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, nats.ErrReconnectBufExceeded) {
		text := strings.ReplaceAll(err.Error(), nats.ErrReconnectBufExceeded.Error(),
			"NATS is not connected at the moment: see that its server runs and can be reached")
		return &explained{text, err}
	}
	if remedy := remedies[codeOf(err)]; remedy != "" {
		return &explained{err.Error() + ": " + remedy, err}
	}
	return err
}

// codeOf is what JetStream refused something with; 0 if err is no answer of
// it.
func codeOf(err error) jetstream.ErrorCode {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api.ErrorCode
	}
	if js, ok := errors.AsType[jetstream.JetStreamError](err); ok && js.APIError() != nil {
		return js.APIError().ErrorCode
	}
	return 0
}

// explained is an error in better words.
type explained struct {
	text string
	err  error
}

func (e *explained) Error() string { return e.text }

func (e *explained) Unwrap() error { return e.err }
