package ports

import (
	"errors"
	"fmt"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"
)

// DisableTxChecksum turns transmit checksum offload off on an interface of the
// calling thread's network namespace, as "ethtool -K IFNAME tx off" does;
// segmentation offload goes with it, because it depends on it.
//
// The pod's end of a veth needs this when the switch's end is an AF_XDP port.
// A veth computes no checksums: it passes frames on with the sum over the
// pseudo-header only, marked CHECKSUM_PARTIAL in a place beside the frame. XDP
// sees the frame without the mark, so the checksum would stay wrong for ever
// and no TCP connection come up.
func DisableTxChecksum(ifname string) error {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return fmt.Errorf("%s: tx checksum offload: %w", ifname, err)
	}
	defer e.Close()
	features, err := e.Features(ifname)
	if err != nil {
		return fmt.Errorf("%s: tx checksum offload: %w", ifname, err)
	}
	off := make(map[string]bool)
	for _, name := range []string{"tx-checksum-ipv4", "tx-checksum-ipv6", "tx-checksum-ip-generic", "tx-checksum-sctp"} {
		if features[name] {
			off[name] = false
		}
	}
	if len(off) == 0 {
		return nil
	}
	if err := e.Change(ifname, off); err != nil {
		return fmt.Errorf("%s: tx checksum offload: %w", ifname, err)
	}
	return nil
}

// RxQueues is how many receive queues an interface of the calling thread's
// network namespace uses; 1 when its driver does not say.
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
