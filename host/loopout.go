package host

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/antrail/antrail/internal/sysctl"
)

// CheckLoop says whether the kernel forwards packets that come by the gateway with the
// Node's own address as source. In loop mode a program sends such packets, after it has
// translated a pod's address to a port of the Node from first to last. The error names the
// sysctl that prevents it. CheckLoop changes nothing.
//
//	accept_local  one of all's and the gateway's is 1; otherwise the source is a martian
//	rp_filter     the larger one of all's and the gateway's is not 1 (strict)
//	port range    the kernel gives none of these ports to the Node's own sockets
func CheckLoop(gateway string, first, last uint16) error {
	accept, err := largerOf(gateway, "accept_local")
	if err == nil && accept == 0 {
		err = fmt.Errorf("net.ipv4.conf.%s.accept_local is 0: the kernel drops the Node's own address as a source; set it or net.ipv4.conf.all.accept_local to 1, or leave directly (uplink.egress: direct)", gateway)
	}
	if err != nil {
		return err
	}
	filter, err := largerOf(gateway, "rp_filter")
	if err == nil && filter == 1 {
		err = fmt.Errorf("net.ipv4.conf.%s.rp_filter is 1 (strict): the kernel drops the Node's own address as a source; set it to 2", gateway)
	}
	if err != nil {
		return err
	}
	return checkPortRange(first, last)
}

// largerOf is the larger of a link's setting and "all"'s, which is the one in effect.
func largerOf(link, name string) (most int, err error) {
	for _, of := range []string{"all", link} {
		text, err := sysctl.Read(sysctl.Root + "net/ipv4/conf/" + of + "/" + name)
		if err != nil {
			return 0, err
		}
		value, err := strconv.Atoi(text)
		if err != nil {
			return 0, fmt.Errorf("net.ipv4.conf.%s.%s is %q, expected a number", of, name, text)
		}
		most = max(most, value)
	}
	return most, nil
}

// checkPortRange is an error if the kernel may give one of these ports to the Node's
// sockets.
func checkPortRange(first, last uint16) error {
	const name = "net/ipv4/ip_local_port_range"
	text, err := sysctl.Read(sysctl.Root + name)
	if err != nil {
		return err
	}
	var low, high uint16
	if _, err := fmt.Sscan(text, &low, &high); err != nil {
		return fmt.Errorf("%s is %q, expected two port numbers", strings.ReplaceAll(name, "/", "."), text)
	}
	reserved, err := sysctl.Read(sysctl.Root + "net/ipv4/ip_local_reserved_ports")
	if err != nil {
		return err
	}
	if low <= last && high >= first && !reserves(reserved, first, last) {
		return fmt.Errorf("net.ipv4.ip_local_port_range is %d-%d: the Node's own sockets may get a port from %d to %d, which pods share; set net.ipv4.ip_local_reserved_ports=%d-%d", low, high, first, last, first, last)
	}
	return nil
}

// reserves says whether one range of the list holds all ports from first to last.
func reserves(list string, first, last uint16) bool {
	for r := range strings.SplitSeq(list, ",") {
		low, high, ok := strings.Cut(r, "-")
		if !ok {
			continue
		}
		l, errLow := strconv.ParseUint(low, 10, 16)
		h, errHigh := strconv.ParseUint(high, 10, 16)
		if errLow == nil && errHigh == nil && uint16(l) <= first && uint16(h) >= last {
			return true
		}
	}
	return false
}
