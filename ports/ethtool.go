//go:build linux

package ports

import (
	"errors"
	"fmt"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"
)

// DisableTxChecksum turns transmit checksum offload off on an interface of the calling thread's
// network namespace, as "ethtool -K IFNAME tx off" does. Segmentation offload depends on it, so
// it is turned off too.
//
// A veth computes no checksums. It passes frames on with only the sum over the pseudo-header,
// marked CHECKSUM_PARTIAL outside the frame. A reader that sees frames without the mark needs
// this at the other end. Such readers are:
//
//   - a capture
//   - a switch whose AF_XDP ports cannot see the mark
//   - an AF_XDP port of antrail in generic mode, where segments arrive uncut
func DisableTxChecksum(ifname string) error {
	return turnOff(ifname, "tx checksum offload",
		"tx-checksum-ipv4", "tx-checksum-ipv6", "tx-checksum-ip-generic", "tx-checksum-sctp")
}

// DisableTunnelSegmentation turns segmentation inside tunnels, and that of SCTP, off on an
// interface of the calling thread's network namespace. TCP segmentation stays; that of UDP stays
// from Linux 6.2 on.
//
// If the switch's end of a veth is a packet socket, the pod's end needs this for the pod's own
// tunnels. The virtio-net header cannot describe their segments, so the switch would drop them.
func DisableTunnelSegmentation(ifname string) error {
	features := []string{
		"tx-gre-segmentation", "tx-gre-csum-segmentation", "tx-ipxip4-segmentation", "tx-ipxip6-segmentation",
		"tx-udp_tnl-segmentation", "tx-udp_tnl-csum-segmentation", "tx-sctp-segmentation",
	}
	if !KnowsUDPSegments() {
		features = append(features, "tx-udp-segmentation")
	}
	return turnOff(ifname, "tunnel segmentation offload", features...)
}

// turnOff turns off the features of an interface that are on.
func turnOff(ifname, what string, features ...string) error {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return fmt.Errorf("%s: %s: %w", ifname, what, err)
	}
	defer e.Close()
	have, err := e.Features(ifname)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", ifname, what, err)
	}
	off := make(map[string]bool)
	for _, name := range features {
		if have[name] {
			off[name] = false
		}
	}
	if len(off) == 0 {
		return nil
	}
	if err := e.Change(ifname, off); err != nil {
		return fmt.Errorf("%s: %s: %w", ifname, what, err)
	}
	return nil
}

// RxQueues is how many receive queues an interface of the calling thread's network namespace
// uses; 1 if its driver does not report it.
func RxQueues(ifname string) (int, error) {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return 0, fmt.Errorf("%s: receive queues: %w", ifname, err)
	}
	defer e.Close()
	c, err := e.GetChannels(ifname)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return 1, nil
	}
	if err != nil {
		return 0, fmt.Errorf("%s: receive queues: %w", ifname, err)
	}
	return max(int(c.RxCount+c.CombinedCount), 1), nil
}
