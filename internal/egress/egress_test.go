package egress_test

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/tripline/tripline/internal/egress"
)

func TestPublicAddresses(t *testing.T) {
	for addr, want := range map[string]bool{
		// on the public internet
		"1.1.1.1": true, "8.8.8.8": true, "100.63.255.255": true, "100.128.0.0": true, "172.15.255.255": true,
		"172.32.0.1": true, "192.167.255.255": true, "169.253.255.255": true, "223.255.255.255": true,
		"2606:4700:4700::1111": true, "2a00:1450:4001::1": true, "64:ff9b::8.8.8.8": true, "::ffff:8.8.8.8": true,
		// loopback, private, link-local, metadata
		"127.0.0.1": false, "127.255.255.254": false, "::1": false,
		"10.0.0.1": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false,
		"169.254.169.254": false, "169.254.0.1": false, "fe80::1": false, "fe80::1%eth0": false, "fd00:ec2::254": false,
		// carrier-grade NAT, unique local, site local
		"100.64.0.1": false, "100.127.255.255": false, "fc00::1": false, "fdff::1": false, "fec0::1": false,
		// unspecified, multicast, broadcast, reserved, documentation, benchmarks
		"0.0.0.0": false, "0.1.2.3": false, "::": false, "224.0.0.1": false, "239.255.255.255": false, "ff02::1": false,
		"255.255.255.255": false, "240.0.0.1": false, "192.0.2.1": false, "198.51.100.1": false, "203.0.113.1": false,
		"198.18.0.1": false, "192.0.0.8": false, "192.88.99.1": false, "2001:db8::1": false, "3fff::1": false, "100::1": false,
		// an inner address inside another
		"::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false, "::ffff:10.0.0.1": false, "::127.0.0.1": false,
		"64:ff9b::10.0.0.1": false, "64:ff9b::169.254.169.254": false, "64:ff9b:1::1": false,
		"2002:7f00:1::": false, "2002:0a00:0001::1": false, "2001:0:7f00:1::": false,
	} {
		ip := netip.MustParseAddr(addr)
		if got := egress.IsPublic(ip); got != want {
			t.Errorf("%s: public %v, want %v", addr, got, want)
		}
		err := egress.Public.Check(ip)
		if (err == nil) != want || err != nil && !errors.Is(err, egress.ErrForbidden) {
			t.Errorf("%s: %v", addr, err)
		}
		if err := egress.Any.Check(ip); err != nil {
			t.Errorf("%s: any refuses: %v", addr, err)
		}
	}
	if egress.IsPublic(netip.Addr{}) {
		t.Error("no address is a public one")
	}
}

func TestControlJudgesWhatIsDialled(t *testing.T) {
	for address, ok := range map[string]bool{
		"8.8.8.8:443": true, "[2606:4700:4700::1111]:443": true,
		"127.0.0.1:80": false, "[::1]:80": false, "[fe80::1%lo]:80": false, "/run/docker.sock": false, "localhost:80": false,
	} {
		if err := egress.Public.Control("tcp", address, nil); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
		if err := egress.Rule("").Control("tcp", address, nil); err != nil {
			t.Errorf("%s: the zero rule refuses: %v", address, err)
		}
	}
}

func TestUnknownRule(t *testing.T) {
	for rule, ok := range map[egress.Rule]bool{"": true, egress.Any: true, egress.Public: true, "none": false, "PUBLIC": false} {
		if err := rule.Validate(); (err == nil) != ok {
			t.Errorf("%q: %v", rule, err)
		}
	}
}
