package natsconn

import (
	"fmt"
	"log/slog"

	"github.com/nats-io/nats-server/v2/server"
)

// serverLog passes on what the server logs. What it calls fatal is where it
// would end the process by itself; here it is an error of the start.
type serverLog struct {
	log   *slog.Logger
	fatal chan<- string // has room for one; the first counts
}

func (l serverLog) Noticef(format string, v ...any) {
	l.log.Debug("nats-server: " + fmt.Sprintf(format, v...))
}

func (l serverLog) Warnf(format string, v ...any) {
	l.log.Warn("nats-server: " + fmt.Sprintf(format, v...))
}

func (l serverLog) Errorf(format string, v ...any) {
	l.log.Error("nats-server: " + fmt.Sprintf(format, v...))
}

func (l serverLog) Fatalf(format string, v ...any) {
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
		l.log.Error("nats-server: " + fmt.Sprintf(format, v...))
	}
}

func (l serverLog) Debugf(string, ...any) {}
func (l serverLog) Tracef(string, ...any) {}

// health asks for the state of the server and of all that it stores.
func health(srv *server.Server) error {
	if h := srv.Healthz(nil); h.Status != "ok" {
		return fmt.Errorf("nats-server is not healthy: %s: %s", h.Status, h.Error)
	}
	return nil
}
