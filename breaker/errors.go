package breaker

import (
	"errors"
	"fmt"
	"time"
)

// Errors of [Breaker.Admit].
var (
	// ErrOpen: the breaker is open. The error at hand is an [*OpenError].
	ErrOpen = errors.New("breaker is open")
	// ErrProbeCap: the breaker is half-open, and as many probes as it allows
	// are in flight.
	ErrProbeCap = errors.New("breaker is half-open with all probes in flight")
)

// OpenError is the error of an open breaker. It is made once for each open
// window, and again if that is shortened.
type OpenError struct {
	Until time.Duration // when the open window ends, on the caller's clock
}

func (e *OpenError) Error() string {
	return fmt.Sprintf("breaker is open until %v", e.Until)
}

// Is says that an OpenError is an [ErrOpen].
func (e *OpenError) Is(target error) bool { return target == ErrOpen }
