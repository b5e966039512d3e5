package programs

import (
	"fmt"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// Programs beside Antrea's, for ports of their own. The entries of Antrea's come from objects.
//
//  1. Their tables have numbers from firstBeside on, which Antrea's do not reach. So Antrea's
//     tables can be renumbered at any time.
//  2. An entry of the first table, above all others, sends their ports' packets to them.
//  3. Their zones are below firstOfAntrea, so no connection belongs to both.
const (
	firstBeside   = 128
	firstOfAntrea = 0x1000 // zones of VLANs; the others are 65510, 65511, 65520 and 65521
)

// Beside makes programs beside Antrea's. It returns the reason of each entry, by the part. first
// is Antrea's first table, and names gets their names. The error tells why a program cannot be
// there.
func Beside(first uint8, names *flow.Names, parts ...layout.Part) ([]*flow.Entry, []map[*flow.Entry]layout.Origin, error) {
	entries, origins, err := layout.Behind(first, names, firstBeside, parts...)
	if err != nil {
		return nil, nil, err
	}
	for i, of := range origins {
		for e := range of {
			for _, a := range e.Actions {
				if ct, ok := a.(*flow.CT); ok && ct.Zone >= firstOfAntrea {
					return nil, nil, fmt.Errorf("program %s has connections in zone %d, as Antrea's may, and cannot be beside it", parts[i].Name, ct.Zone)
				}
			}
		}
	}
	return entries, origins, nil
}
