package pipeline

import (
	"cmp"
	"maps"
	"net"
	"strconv"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/dataplane/telemetry"
)

// Ports as clients see them: the switch's counters with the Pod behind each port, and wanted
// ports without a link.

// portMACs are a port's learned addresses, and counts of those not learned.
func portMACs(s telemetry.MACStats) api.PortMACs {
	m := api.PortMACs{Learned: s.Learned, NotLearned: map[string]uint64{MACShareFull: s.Full, MACElsewhere: s.Foreign}}
	maps.DeleteFunc(m.NotLearned, func(_ string, n uint64) bool { return n == 0 })
	return m
}

// Reasons why NORMAL does not learn the source of a frame.
const (
	MACShareFull = "share full"
	MACElsewhere = "configured on another port"
)

// PortRecords are the switch's ports, then the wanted ports without a link.
func (p *Pipeline) PortRecords() []api.PortRecord {
	var all []api.PortRecord
	names := p.Switch.Names()
	for _, s := range p.portStats() {
		r := api.PortRecord{
			No: s.No, Name: names.Port(s.No), Link: s.Name, MAC: net.HardwareAddr(s.MAC[:]).String(), MTU: s.MTU,
			Up: s.Up, Driver: s.Driver, Mode: s.Mode, Why: s.Why, Reasons: s.Reasons, Worker: s.Worker, Load: s.Load,
			Rx: api.Counts{Packets: s.RxPackets, Bytes: s.RxBytes, Dropped: s.RxDropped, Errors: s.RxErrors},
			Tx: api.Counts{Packets: s.TxPackets, Bytes: s.TxBytes, Dropped: s.TxDropped, Errors: s.TxErrors}, MACs: portMACs(s.MACs), Offload: p.portOffload(&s),
		}
		r.Name = cmp.Or(r.Name, s.Name)
		r.Pod = p.podAt(s.No)
		all = append(all, r)
	}
	return append(all, p.missingRecords(all)...)
}

// podAt is the Pod at a port, as namespace/name; "" for none.
func (p *Pipeline) podAt(port uint32) string {
	if p.Objects == nil {
		return ""
	}
	pod, ok := p.Objects.PodAt(port)
	if !ok {
		return ""
	}
	return pod.Namespace + "/" + pod.Name
}

// TableName is the name of a table, or its number.
func (p *Pipeline) TableName(id uint8) string {
	if name := p.Switch.Names().Table(id); name != "" {
		return name
	}
	return strconv.Itoa(int(id))
}

// portOffload is the offload record of a port.
func (p *Pipeline) portOffload(s *telemetry.PortStats) api.PortOffload {
	r := api.PortOffload{
		On: s.OffloadLink != 0, Rx: api.Counts{Packets: s.ByKernel.RxPackets, Bytes: s.ByKernel.RxBytes},
		Tx: api.Counts{Packets: s.ByKernel.TxPackets, Bytes: s.ByKernel.TxBytes},
	}
	if !r.On {
		r.Why = cmp.Or(p.Switch.OffloadOff(), "only between packet sockets")
	}
	return r
}
