package afxdp

import (
	"github.com/antrail/antrail/ports"
	"golang.org/x/sys/unix"
)

// Stats adds the kernel's own counters (XDP_STATISTICS) to ours.
func (p *Port) Stats() ports.Stats {
	s := p.count.Stats()
	kernel := p.kernelStats()
	s.AddDrops(ports.RxRingFull, kernel.Rx_ring_full)
	// The dropped frames include every frame that found the fill ring empty.
	empty := min(kernel.Rx_fill_ring_empty_descs, kernel.Rx_dropped)
	s.AddDrops(ports.RxNoFrame, empty)
	s.AddDrops(ports.RxTooLong, kernel.Rx_dropped-empty)
	s.AddDrops(ports.RxInvalid, kernel.Rx_invalid_descs)
	s.AddDrops(ports.TxFailed, kernel.Tx_invalid_descs)
	return s
}

// DropSample is the last frame that was not sent for a reason.
func (p *Port) DropSample(reason string) ports.DropSample { return p.count.DropSample(reason) }

func (p *Port) kernelStats() unix.XDPStatistics {
	p.tx.Lock()
	defer p.tx.Unlock()
	if !p.closed {
		if now, err := p.socket.stats(); err == nil {
			p.last = now
		}
	}
	return since(&p.before, &p.last)
}

// since is the counts of dropped frames between two readings.
func since(before, now *unix.XDPStatistics) unix.XDPStatistics {
	return unix.XDPStatistics{
		Rx_dropped:               now.Rx_dropped - before.Rx_dropped,
		Rx_invalid_descs:         now.Rx_invalid_descs - before.Rx_invalid_descs,
		Tx_invalid_descs:         now.Tx_invalid_descs - before.Tx_invalid_descs,
		Rx_ring_full:             now.Rx_ring_full - before.Rx_ring_full,
		Rx_fill_ring_empty_descs: now.Rx_fill_ring_empty_descs - before.Rx_fill_ring_empty_descs,
	}
}
