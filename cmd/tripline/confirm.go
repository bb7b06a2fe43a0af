package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
)

// confirmed is embedded by the commands that can't be undone.
type confirmed struct {
	Yes bool `short:"y" help:"Don't ask."`
}

// confirm asks before something that can't be undone. Where nobody can be
// asked it takes --yes.
func (c confirmed) confirm(s streams, question string) error {
	if c.Yes {
		return nil
	}
	if !s.asks {
		return usageError{fmt.Errorf("%s This can't be undone, and there is no terminal to ask on: add --yes", question)}
	}
	fmt.Fprintf(s.err, "%s This can't be undone. [y/N] ", question)
	line, err := bufio.NewReader(s.in).ReadString('\n')
	if err != nil && line == "" {
		return errors.New("no answer; nothing was done")
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return errors.New("nothing was done")
}
