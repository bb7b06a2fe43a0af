package jetqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/nats-io/nats.go"
	"github.com/tripline/tripline/fallback"
)

// Error codes of JetStream that mean something here.
const (
	codeInsufficientResources = 10023 // the server as a whole is full
	codeMessageNotFound       = 10037
	codeSequenceNotFound      = 10043
	codeInsufficientStorage   = 10047 // max_store is given away
	codeDeleteFailed          = 10057
	codeStreamNotFound        = 10059
	codeStoreFailed           = 10077 // max_bytes is reached, or the store is broken
)

// What the server says with codeStoreFailed and codeDeleteFailed.
const (
	textMaxBytes    = "maximum bytes exceeded"
	textNoMessage   = "no message found"
	textDeleted     = "stream store message not found"
	textEndOfStream = "stream store EOF"
)

// apiError is an error that the server answered with.
type apiError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *apiError) Error() string {
	return fmt.Sprintf("%s (JetStream error %d)", e.Description, e.ErrCode)
}

// ask asks the leader of a stream. What it answers is in resp; an error of
// the answer is for the caller to read out of it.
func (q *Queue) ask(ctx context.Context, verb, stream string, req, resp any) error {
	ctx, cancel := context.WithTimeout(ctx, q.cfg.Timeout)
	defer cancel()
	data, err := json.Marshal(req)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	msg, err := q.nc.RequestWithContext(ctx, "$JS.API.STREAM."+verb+"."+stream, data)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(msg.Data, resp); err != nil {
		return fmt.Errorf("answer not understood: %w", err)
	}
	return nil
}

// getRequest asks for one message: the first with at least Seq whose subject
// matches Next, or the last of a subject.
type getRequest struct {
	Seq  uint64 `json:"seq,omitempty"`
	Next string `json:"next_by_subj,omitempty"`
	Last string `json:"last_by_subj,omitempty"`
}

// get asks for a message; nil if the leader finds none.
func (q *Queue) get(ctx context.Context, stream string, req getRequest) (*stored, error) {
	var resp struct {
		Error   *apiError `json:"error"`
		Message *stored   `json:"message"`
	}
	err := q.ask(ctx, "MSG.GET", stream, req, &resp)
	switch {
	case err != nil:
		return nil, err
	case resp.Error != nil && resp.Error.ErrCode == codeMessageNotFound:
		return nil, nil
	case resp.Error != nil:
		return nil, resp.Error
	case resp.Message == nil:
		return nil, errors.New("answer holds no message")
	}
	return resp.Message, nil
}

// remove deletes a message, without overwriting its bytes on disk; false if
// it was deleted before.
func (q *Queue) remove(ctx context.Context, stream string, seq uint64) (bool, error) {
	req := struct {
		Seq     uint64 `json:"seq"`
		NoErase bool   `json:"no_erase"`
	}{seq, true}
	var resp struct {
		Error   *apiError `json:"error"`
		Success bool      `json:"success"`
	}
	if err := q.ask(ctx, "MSG.DELETE", stream, req, &resp); err != nil {
		return false, err
	}
	if e := resp.Error; e != nil {
		if isDeleted(e) {
			return false, nil
		}
		return false, e
	}
	if !resp.Success {
		return false, errors.New("the server did not confirm it")
	}
	return true, nil
}

// isDeleted says whether a delete failed because there was nothing to delete.
func isDeleted(e *apiError) bool {
	switch e.ErrCode {
	case codeMessageNotFound, codeSequenceNotFound:
		return true
	case codeDeleteFailed:
		return e.Description == textNoMessage || e.Description == textDeleted || e.Description == textEndOfStream
	}
	return false
}

// streamState is what stream-info tells of a stream's content.
type streamState struct {
	Messages uint64            `json:"messages"`
	Bytes    uint64            `json:"bytes"`
	Subjects map[string]uint64 `json:"subjects"`
}

// info asks for a stream's state and, if filter isn't empty, the number of
// messages of each subject that matches it.
func (q *Queue) info(ctx context.Context, stream, filter string) (streamState, error) {
	type request struct {
		Filter string `json:"subjects_filter,omitempty"`
		Offset int    `json:"offset,omitempty"`
	}
	var all streamState
	for offset := 0; ; {
		var resp struct {
			Error *apiError   `json:"error"`
			Total int         `json:"total"`
			State streamState `json:"state"`
		}
		if err := q.ask(ctx, "INFO", stream, request{filter, offset}, &resp); err != nil {
			return all, err
		}
		if resp.Error != nil {
			return all, resp.Error
		}
		if all.Subjects == nil {
			all = resp.State
		} else {
			maps.Copy(all.Subjects, resp.State.Subjects)
		}
		// A listing longer than the server's page comes in several answers.
		offset = len(all.Subjects)
		if filter == "" || len(resp.State.Subjects) == 0 || offset >= resp.Total {
			return all, nil
		}
	}
}

// explain wraps an error with what was being done, where, and what an operator
// can do about it.
func (q *Queue) explain(stream, doing string, err error) error {
	if err == nil || errors.Is(err, fallback.ErrClosed) {
		return err
	}
	advice := ""
	e, isAPI := errors.AsType[*apiError](err)
	switch {
	case isAPI && e.ErrCode == codeStoreFailed && e.Description == textMaxBytes:
		return fmt.Errorf("%s in stream %s: %w: raise %s, or purge or deliver what is in it",
			doing, stream, fallback.ErrFull, q.roomKey(stream))
	case isAPI && (e.ErrCode == codeInsufficientResources || e.ErrCode == codeInsufficientStorage):
		return fmt.Errorf("%s in stream %s: %w: the NATS server has no room left, raise its max_store or free disk",
			doing, stream, fallback.ErrFull)
	case isAPI && e.ErrCode == codeStoreFailed:
		advice = ": look at the NATS server's log and disk; it may need a restart"
	case isAPI && e.ErrCode == codeStreamNotFound, errors.Is(err, nats.ErrNoResponders):
		advice = ": the stream or JetStream is not there; if the stream was deleted, a restart of Tripline makes it anew"
	case errors.Is(err, nats.ErrMaxPayload):
		advice = fmt.Sprintf(": raise the NATS server's max_payload (%d bytes), or shorten the fence's properties",
			q.nc.MaxPayload())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, errNoAck):
		advice = ": is the NATS server well, and does the stream have a leader?"
	}
	return fmt.Errorf("%s in stream %s: %w%s", doing, stream, err, advice)
}

// roomKey is the setting that bounds a stream.
func (q *Queue) roomKey(stream string) string {
	if stream == q.dead.name {
		return "the dead letters' share of nats.max_store"
	}
	return "consumers." + q.cfg.Consumer + ".fallback.max_bytes"
}
