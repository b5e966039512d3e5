package host

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/antrail/antrail/internal/sysctl"
)

// CheckLoop says whether the kernel forwards what comes by the gateway with the Node's own
// address as its source. A program sends that in loop mode, after it has translated a pod's
// address to a port of the Node's from first to last. The error names the sysctl that is in
// the way. Nothing is changed.
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

// largerOf is the larger one of a link's setting and all's, which the kernel takes for both settings.
func largerOf(link, name string) (most int, err error) {
	for _, of := range []string{"all", link} {
		text, err := sysctl.Read(sysctl.Root + "net/ipv4/conf/" + of + "/" + name)
		if err != nil {
			return 0, err
		}
		value, err := strconv.Atoi(text)
		if err != nil {
			return 0, fmt.Errorf("net.ipv4.conf.%s.%s is %q, and no number", of, name, text)
		}
		most = max(most, value)
	}
	return most, nil
}

// checkPortRange finds ports that the kernel gives to the Node's sockets of its own accord.
func checkPortRange(first, last uint16) error {
	const name = "net/ipv4/ip_local_port_range"
	text, err := sysctl.Read(sysctl.Root + name)
	if err != nil {
		return err
	}
	var low, high uint16
	if _, err := fmt.Sscan(text, &low, &high); err != nil {
		return fmt.Errorf("%s is %q, and no range", strings.ReplaceAll(name, "/", "."), text)
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

// reserves says whether one range of a list of ports has all from first to last.
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
