package main

import (
	"fmt"
	"net/http"
	"time"
)

type devicesCmd struct {
	Show   deviceShowCmd   `cmd:"" help:"Show where a device is, and in which fences."`
	Forget deviceForgetCmd `cmd:"" help:"Remove all that is stored of a device."`
}

// Help is shown by --help.
func (*devicesCmd) Help() string {
	return `What Tripline knows of a device.

Examples:

  tripline devices show van-1
  tripline devices forget van-1 --yes`
}

type deviceShowCmd struct {
	Device string `arg:"" help:"Device id."`
	operator
}

// device is what the service knows of one.
type device struct {
	Device    string
	Partition int
	Silent    bool
	Newest    struct {
		Lat, Lon                      float64
		TS                            time.Time
		Accuracy, Speed, Heading, Alt *float64
	}
	Inside []struct {
		Fence, Name string
		EnteredAt   time.Time `json:"entered_at"`
	}
}

// Run shows it.
func (c *deviceShowCmd) Run(s streams) error {
	svc, err := c.service()
	if err != nil {
		return err
	}
	d, raw, err := get[device](s.ctx, svc, at("devices", c.Device), nil)
	if err != nil || c.JSON {
		return orJSON(s, raw, err)
	}
	fmt.Fprintf(s.out, "device     %s (partition %d)\n", printable(d.Device), d.Partition)
	fmt.Fprintf(s.out, "position   %v, %v", d.Newest.Lat, d.Newest.Lon)
	for _, f := range []struct {
		name, unit string
		v          *float64
	}{
		{"accuracy", "m", d.Newest.Accuracy}, {"speed", "m/s", d.Newest.Speed},
		{"heading", "degrees", d.Newest.Heading}, {"altitude", "m", d.Newest.Alt},
	} {
		if f.v != nil {
			fmt.Fprintf(s.out, ", %s %v %s", f.name, *f.v, f.unit)
		}
	}
	fmt.Fprintf(s.out, "\nnewest     %s UTC, %s ago\n", stamp(d.Newest.TS), ago(d.Newest.TS))
	if d.Silent {
		fmt.Fprintln(s.out, "silent     it was told silent since")
	}
	if len(d.Inside) == 0 {
		_, err := fmt.Fprintln(s.out, "inside     no fence")
		return err
	}
	t := newTable(s.colour, "INSIDE", "NAME", "SINCE", "FOR")
	for _, i := range d.Inside {
		t.add(i.Fence, i.Name, stamp(i.EnteredAt), short(d.Newest.TS.Sub(i.EnteredAt)))
	}
	return t.write(s.out)
}

type deviceForgetCmd struct {
	Device string `arg:"" help:"Device id."`
	confirmed
	operator
}

// Help is shown by --help.
func (*deviceForgetCmd) Help() string {
	return `Removes the device's stored locations, its presence, and its triggers that were
not delivered yet, in every consumer's queue and among the dead letters. A
device that goes on sending is known again from its next location on: stop it
first. Publishers may have to wait for a moment meanwhile.

Example:

  tripline devices forget van-1`
}

// Run asks, then removes.
func (c *deviceForgetCmd) Run(s streams) error {
	svc, err := c.service()
	if err != nil {
		return err
	}
	if err := c.confirm(s, fmt.Sprintf("Remove all that is stored of device %s?", c.Device)); err != nil {
		return err
	}
	f, raw, err := ask[struct {
		Known                            bool
		Locations, Waiting, Parked, Dead int
	}](s.ctx, svc, request{method: http.MethodDelete, path: at("devices", c.Device)})
	if err != nil || c.JSON {
		return orJSON(s, raw, err)
	}
	if !f.Known && f.Locations+f.Waiting+f.Parked+f.Dead == 0 {
		_, err := fmt.Fprintf(s.out, "nothing was stored of device %s\n", c.Device)
		return err
	}
	_, err = fmt.Fprintf(s.out, "forgot device %s: %s, %s, %s\n", c.Device, plural(f.Locations, "location"),
		plural(f.Waiting+f.Parked, "undelivered trigger"), plural(f.Dead, "dead letter"))
	return err
}
