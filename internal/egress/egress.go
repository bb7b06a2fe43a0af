// Package egress decides to which addresses Tripline may connect on behalf of
// a configuration that others wrote. The rule is checked on the address that
// is dialled, after name resolution, so that neither a name that resolves to
// an inner address nor a name that changes between check and use gets around
// it.
package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// Rule says which addresses may be dialled.
type Rule string

// The rules. The zero value is Any.
const (
	// Any allows every address.
	Any Rule = "any"
	// Public allows only addresses of the public internet: no loopback,
	// private, link-local (with it the metadata services of clouds),
	// carrier-grade NAT, unique local, multicast, documentation or other
	// reserved ones, also when an IPv6 address carries one of them.
	Public Rule = "public"
)

// ErrForbidden is what every refusal by a rule is.
var ErrForbidden = errors.New("forbidden by egress: public")

// Validate refuses an unknown rule.
func (r Rule) Validate() error {
	switch r {
	case "", Any, Public:
		return nil
	}
	return fmt.Errorf("egress %q is unknown: use %q or %q", string(r), Any, Public)
}

// Check says whether ip may be dialled: nil, or an error that is ErrForbidden.
func (r Rule) Check(ip netip.Addr) error {
	if r != Public || IsPublic(ip) {
		return nil
	}
	return fmt.Errorf("address %s: %w", ip, ErrForbidden)
}

// Control is for net.Dialer.Control: it checks the address that is about to be
// dialled.
func (r Rule) Control(_, address string, _ syscall.RawConn) error {
	if r != Public {
		return nil
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		// Not an IP address: a unix socket, or something newer than this rule.
		return fmt.Errorf("address %q: %w", address, ErrForbidden)
	}
	return r.Check(ap.Addr())
}

// reserved4 are the IPv4 blocks that are not on the public internet (IANA's
// special-purpose registry, with multicast and the reserved class E).
var reserved4 = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
	"172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16",
	"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
)

// reserved6 are the blocks inside the global unicast space 2000::/3 that are
// not on the public internet, or lead elsewhere: protocol assignments (with
// Teredo and ORCHID), documentation, 6to4.
var reserved6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")

var (
	global6 = netip.MustParsePrefix("2000::/3")
	// nat64 carries an IPv4 address in its last four bytes.
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// IsPublic says whether ip is an address of the public internet. An IPv6
// address that carries an IPv4 one (mapped, or by NAT64) is judged by that.
func IsPublic(ip netip.Addr) bool {
	if !ip.IsValid() || ip.Zone() != "" {
		return false
	}
	ip = ip.Unmap()
	if ip.Is4() {
		return !within(ip, reserved4)
	}
	if nat64.Contains(ip) {
		b := ip.As16()
		return !within(netip.AddrFrom4([4]byte(b[12:])), reserved4)
	}
	return global6.Contains(ip) && !within(ip, reserved6)
}

func within(ip netip.Addr, blocks []netip.Prefix) bool {
	for _, p := range blocks {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}
