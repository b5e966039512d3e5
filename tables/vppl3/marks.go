package vppl3

import (
	"github.com/antrail/antrail/tables/layout"
)

// txField is the port that ip4-lookup found, like VPP's tx_sw_if_index.
var txField = layout.Reg(1, "TxSwIfIndex", 0, 31)

// Zones: sessions that ACLs reflect, by the addresses that a pod sees; translations to endpoints;
// connections of pods to themselves.
const (
	aclZone      = 1
	natZone      = 2
	loopbackZone = 3
)

var marks = layout.NewMarks(layout.Marks{Fields: []layout.Field{txField}, Value: layout.PortText(txField)})
