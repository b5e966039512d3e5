package agent

import (
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/tables"
)

// packetIns is the subscriber of packet-ins: what entries send to the agent is
// answered, logged, or both. The switch calls it for one at a time.
type packetIns struct {
	rejecter
	audit *audit   // nil: nobody keeps a log
	lost  *lostLog // of what is refused or dropped here
}

func (p *packetIns) packetIn(pi *dataplane.PacketIn) {
	if tables.NoEndpoint(pi.UserData, &pi.Key) {
		p.lost.refuse(pi, lossNoEndpoint, nil)
		p.noEndpoint(pi)
		return
	}
	v, ok := tables.ReadVerdict(pi.UserData, &pi.Key, p.sw.Names())
	if !ok {
		return
	}
	switch {
	case v.Reject:
		p.lost.refuse(pi, lossRejected, &v)
		p.byPolicy(pi)
	case v.Action == tables.Drop:
		p.lost.refuse(pi, lossLogged, &v)
	}
	if v.Log && p.audit != nil {
		p.audit.note(pi, v)
	}
}
