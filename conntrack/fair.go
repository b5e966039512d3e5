package conntrack

// The fair share of a port (CT-47). It matters only if the table is crowded: more than 95 % full.
//
//  1. The 95 % are split evenly among the ports that hold connections.
//  2. The rest that ports below an even split leave is split among the others. So one port alone
//     on a Node may have all 95 %.
//  3. A port that many senders share (Config.SharedPorts: the tunnel, the gateway) counts as many
//     ports as there are others. Otherwise thirty pods could together reduce the traffic from
//     other Nodes to the share of one pod.
//
// If all ports stay within their shares, the table is not crowded. So in a crowded table some
// port is above its share, and that port pays (evict.go).
//
// Senders behind one shared port have one share, because the switch cannot distinguish a busy
// Node from a hostile pod there. The pod's own Node bounds the pod by its port.

// division is how a crowded table is shared at one moment. A weight makes ports comparable: it is
// a port's connections times the number of other ports like it.
type division struct {
	pods  int64                 // ports of one sender each that hold connections; at least 1
	fair  int64                 // the weight up to which a port is within its fair share
	payer [evictable]*portShare // by list: the heaviest port with connections in it
	held  [evictable]int64      // its weight
}

// weight is a port's connections, comparable to those of any other port.
func (d *division) weight(s *portShare, connections int64) int64 {
	if s.many {
		return connections
	}
	return connections * d.pods
}

// length is how many connections the payer has in a list.
func (d *division) length(l listed) uint32 {
	if d.payer[l] == nil {
		return 0
	}
	return d.payer[l].lists[l].Len()
}

// divide computes the fair share from the counts of all ports, before a new connection of a port.
// counted says whether the new connection is already counted.
func (t *Table) divide(from *portShare, counted bool) (d division) {
	most := t.limits.max.Load()
	left := most - most/20
	pods, shared := t.shares.pods.Load(), t.shares.shared.Load()
	if from.count.Load() == 0 { // the new connection makes the port one of them
		if from.many {
			shared++
		} else {
			pods++
		}
	}
	d.pods = max(pods, 1)
	even := left * d.pods / (pods + shared*d.pods)
	if asks := d.weight(from, from.count.Load()); !counted && asks < even {
		left--
	}
	split := int64(0) // the number of ports for the split
	for _, s := range t.shares.pages.all() {
		n := s.count.Load()
		if n <= 0 {
			continue
		}
		w := d.weight(s, n)
		switch {
		case w <= even:
			left -= n
		case s.many:
			split += d.pods
		default:
			split++
		}
		d.consider(s, w)
	}
	d.fair = even
	if split > 0 {
		d.fair = max(even, left*d.pods/split)
	}
	return d
}

// consider makes a port the payer of each list in which no earlier port was heavier.
func (d *division) consider(s *portShare, weight int64) {
	for l := range d.payer {
		if weight > d.held[l] && s.lists[l].Oldest() != 0 {
			d.payer[l], d.held[l] = s, weight
		}
	}
}
