package main

import (
	"fmt"
	"net/http"
)

type reloadCmd struct{ operator }

// Help is shown by --help.
func (*reloadCmd) Help() string {
	return `Has the running service read its configuration again, as SIGHUP does. What only
a restart can change, or a wrong configuration, is refused with exit code 1 and
changes nothing.

Example:

  tripline reload`
}

// Run asks for it.
func (c *reloadCmd) Run(s streams) error {
	svc, err := c.service()
	if err != nil {
		return err
	}
	raw, err := svc.ask(s.ctx, request{method: http.MethodPost, path: "/reload"})
	if err != nil || c.JSON {
		return orJSON(s, raw, err)
	}
	_, err = fmt.Fprintln(s.out, "the configuration was read again")
	return err
}
