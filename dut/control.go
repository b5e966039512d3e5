package dut

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/antrail/antrail/conntrack"
)

// control does what an ovs-appctl command of the same name does; antrail/… are
// our own.
func (d *DUT) control(args []string) (string, error) {
	if len(args) == 0 {
		return "", fmt.Errorf("ctl: no command")
	}
	switch name, rest := args[0], args[1:]; name {
	case "dpctl/ct-disable-tcp-seq-chk":
		d.ct.SetSequenceCheck(false)
		return "", nil
	case "dpctl/ct-enable-tcp-seq-chk":
		d.ct.SetSequenceCheck(true)
		return "", nil
	case "dpctl/flush-conntrack":
		d.ct.Flush()
		return "", nil
	case "dpctl/ct-set-maxconns":
		n, err := number(rest, 32)
		if err == nil {
			d.ct.SetMax(int(n))
		}
		return "", err
	case "dpctl/ct-set-limits":
		return "", d.setLimits(rest)
	case "dpctl/ct-get-limits":
		return d.limits(rest)
	case "dpctl/ct-del-limits":
		return "", d.deleteLimits(rest)
	case "antrail/ct-out-of-window":
		return strconv.FormatUint(d.ct.Stats().OutOfWindow, 10), nil
	case "antrail/ct-shield":
		return "", d.shield(rest)
	default:
		return "", fmt.Errorf("ctl: unknown command %q", name)
	}
}

// shield takes milliseconds and the endpoints that make no connections by
// themselves for so long: 10000 10.0.0.2:8080 [fd00::2]:8080.
func (d *DUT) shield(args []string) error {
	ms, err := number(args[:min(1, len(args))], 32)
	if err != nil {
		return err
	}
	endpoints := make([]netip.AddrPort, len(args)-1)
	for i, a := range args[1:] {
		if endpoints[i], err = netip.ParseAddrPort(a); err != nil {
			return fmt.Errorf("ctl: %w", err)
		}
	}
	d.ct.Shield(endpoints, d.now+int64(ms)*int64(time.Millisecond))
	return nil
}

func number(args []string, bits int) (uint64, error) {
	if len(args) != 1 {
		return 0, fmt.Errorf("ctl: one number is wanted, not %q", args)
	}
	return strconv.ParseUint(args[0], 0, bits)
}

// setLimits takes zone=7,limit=2 for each argument, all of them or none.
func (d *DUT) setLimits(args []string) error {
	limits := make([]conntrack.ZoneLimit, len(args))
	for i, a := range args {
		zone, limit, _ := strings.Cut(a, ",")
		zs, err := zones([]string{zone})
		number, ok := strings.CutPrefix(limit, "limit=")
		n, bad := strconv.ParseUint(number, 0, 32)
		if err != nil || !ok || bad != nil {
			return fmt.Errorf("ctl: %q is not zone=N,limit=N", a)
		}
		limits[i] = conntrack.ZoneLimit{Zone: zs[0], Limit: uint32(n)}
	}
	for _, l := range limits {
		d.ct.SetLimit(l.Zone, l.Limit)
	}
	return nil
}

// zones takes zone=7 or zone=7,8.
func zones(args []string) ([]uint16, error) {
	var zs []uint16
	for _, a := range args {
		list, ok := strings.CutPrefix(a, "zone=")
		if !ok {
			return nil, fmt.Errorf("ctl: %q is not zone=N", a)
		}
		for _, z := range strings.Split(list, ",") {
			n, err := strconv.ParseUint(z, 0, 16)
			if err != nil {
				return nil, fmt.Errorf("ctl: zone %q: %w", z, err)
			}
			zs = append(zs, uint16(n))
		}
	}
	return zs, nil
}

func (d *DUT) limits(args []string) (string, error) {
	zs, err := zones(args)
	if err != nil {
		return "", err
	}
	byDefault, set := d.ct.Limits()
	var b strings.Builder
	fmt.Fprintf(&b, "default limit=%d\n", byDefault)
	for _, z := range zs {
		limit := byDefault
		for _, have := range set {
			if have.Zone == z {
				limit = have.Limit
			}
		}
		fmt.Fprintf(&b, "zone=%d,limit=%d,count=%d\n", z, limit, d.ct.ZoneCount(z))
	}
	return b.String(), nil
}

func (d *DUT) deleteLimits(args []string) error {
	zs, err := zones(args)
	if err != nil {
		return err
	}
	for _, z := range zs {
		d.ct.DelLimit(z)
	}
	return nil
}
