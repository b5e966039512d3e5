package programs

import (
	"fmt"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// Programs beside Antrea's, whose entries come from objects, for ports of their own:
//
//  1. Their tables have numbers from firstBeside on, which Antrea's do not reach. So Antrea's may be
//     numbered in another way at any time.
//  2. An entry of the first table, above all others, sends their ports' packets to them.
//  3. Their zones are below firstOfAntrea, so no connection belongs to both.
const (
	firstBeside   = 128
	firstOfAntrea = 0x1000 // those of VLANs; the others are 65510, 65511, 65520 and 65521
)

// Beside is programs beside Antrea's, and what each entry is for, by the part. first is the first table of
// Antrea's, to whose names theirs come. The error says what keeps a program from being there.
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
