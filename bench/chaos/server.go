package main

import (
	"context"
	"errors"
)

type server struct{ faults int }

func (r *run) openServer(context.Context) (string, string, error) {
	return "", "", errors.New("not yet")
}
func (r *run) closeServer()                                   {}
func (r *run) torment(tempers, running context.Context) error { return nil }
