package diagram

import (
	"slices"
)

// Routes of lines. All lines to one table share one track in each gutter, and one lane in its
// band:
//
//   - to the next table of the column: straight down;
//   - to a later one of the column: along the gutter on the right;
//   - to an earlier one: along the gutter on the left;
//   - to the next column: straight, or along the gutter between;
//   - to any other: up the gutter, along the lane, down the gutter before it.

// way is the route of an edge.
type way uint8

const (
	wayDown way = iota
	wayAside
	wayBack
	wayStraight
	wayGutter
	wayLane
)

// track is a line in a gutter, to a table, on one side of its box. Tracks of lower order are
// further left.
type track struct {
	to    int
	order int
}

// Orders of tracks: back to the column on the left, away to a lane, on to the next column, and
// along the same column.
const (
	orderAside = iota
	orderLeave
	orderEnter
	orderBack
)

// lanes are the tables of a band that have a lane.
type lanes []int

// exit is where an edge leaves the right side of a box.
type exit struct{ edge int }

type point struct{ x, y float64 }

func (l *layout) ends(e *Edge) (from, to int) { return l.index[e.From], l.index[e.To] }

func (l *layout) way(e *Edge) way {
	i, j := l.ends(e)
	from, to := &l.places[i], &l.places[j]
	same := from.band == to.band
	switch {
	case same && from.col == to.col && to.row == from.row+1:
		return wayDown
	case same && from.col == to.col && to.row >= from.row:
		return wayAside
	case same && from.col == to.col:
		return wayBack
	case same && to.col == from.col+1 && to.row == from.row:
		return wayStraight
	case to.col == from.col+1:
		return wayGutter
	}
	return wayLane
}

// plan assigns tracks and lanes to tables.
func (l *layout) plan() {
	l.lanes = make([]lanes, len(l.bands))
	for i := range l.m.Edges {
		e := &l.m.Edges[i]
		_, to := l.ends(e)
		from, p := l.places[l.index[e.From]], l.places[to]
		switch l.way(e) {
		case wayAside:
			l.track(from.col+1, track{to, orderAside})
		case wayBack:
			l.track(from.col, track{to, orderBack})
		case wayGutter:
			l.track(p.col, track{to, orderEnter})
		case wayLane:
			l.track(from.col+1, track{to, orderLeave})
			l.track(p.col, track{to, orderEnter})
			if !slices.Contains(l.lanes[p.band], to) {
				l.lanes[p.band] = append(l.lanes[p.band], to)
			}
		}
	}
	for _, lane := range l.lanes {
		slices.SortFunc(lane, func(a, b int) int { return l.places[b].col - l.places[a].col })
	}
	for _, ts := range l.tracks {
		slices.SortFunc(ts, func(a, b track) int {
			if a.order != b.order {
				return a.order - b.order
			}
			return b.to - a.to
		})
	}
}

func (l *layout) track(gutter int, t track) {
	if !slices.Contains(l.tracks[gutter], t) {
		l.tracks[gutter] = append(l.tracks[gutter], t)
	}
}

// trackX is the position of a track. The last pixels before a box are for the arrow.
func (l *layout) trackX(gutter int, t track) float64 {
	const first, last = 5, gutterW - 11
	ts := l.tracks[gutter]
	step := float64(last-first) / float64(len(ts)+1)
	return margin + float64(gutter)*pitch + first + step*float64(slices.Index(ts, t)+1)
}

func (l *layout) laneY(to int) float64 {
	b := l.places[to].band
	return l.top[b] + titleH + float64(slices.Index(l.lanes[b], to))*laneStep + laneStep/2
}

// assignExits spreads the edges that leave the right side of a box. Edges upwards leave above
// the middle, edges downwards below it. An edge straight on leaves in the middle.
func (l *layout) assignExits() {
	const first, step, most = 7, 5.5, boxH/2 - 3
	ups, downs := map[int]float64{}, map[int]float64{}
	for i := range l.m.Edges {
		e := &l.m.Edges[i]
		from, to := l.ends(e)
		switch w := l.way(e); {
		case w == wayStraight || w == wayDown:
		case w == wayAside || w == wayBack || l.goesDown(w, from, to):
			l.exits[exit{i}] = min(first+step*downs[from], most)
			downs[from]++
		default:
			l.exits[exit{i}] = -min(first+step*ups[from], most)
			ups[from]++
		}
	}
}

func (l *layout) goesDown(w way, from, to int) bool {
	if w == wayLane {
		return l.laneY(to) > l.places[from].y
	}
	return l.places[to].y > l.places[from].y
}

// asideY is where lines enter the right side of a box: in the middle, unless one leaves there.
func (l *layout) asideY(to int) float64 {
	for i := range l.m.Edges {
		if e := &l.m.Edges[i]; l.index[e.From] == to && l.way(e) == wayStraight {
			return -4
		}
	}
	return 0
}

// route is the line of an edge, from box to box.
func (l *layout) route(i int) []point {
	e := &l.m.Edges[i]
	a, b := l.ends(e)
	from, to := &l.places[a], &l.places[b]
	y, end := from.y+boxH/2+l.exits[exit{i}], to.y+boxH/2
	right := from.x + boxW
	switch l.way(e) {
	case wayDown:
		return []point{{from.x + boxW/2, from.y + boxH}, {to.x + boxW/2, to.y}}
	case wayAside:
		x := l.trackX(from.col+1, track{b, orderAside})
		end += l.asideY(b)
		return []point{{right, y}, {x, y}, {x, end}, {to.x + boxW, end}}
	case wayBack:
		x := l.trackX(from.col, track{b, orderBack})
		return []point{{from.x, y}, {x, y}, {x, end + boxH/3}, {to.x, end + boxH/3}}
	case wayStraight:
		return []point{{right, y}, {to.x, end}}
	case wayGutter:
		x := l.trackX(to.col, track{b, orderEnter})
		return []point{{right, y}, {x, y}, {x, end}, {to.x, end}}
	}
	leave, enter := l.trackX(from.col+1, track{b, orderLeave}), l.trackX(to.col, track{b, orderEnter})
	lane := l.laneY(b)
	return []point{{right, y}, {leave, y}, {leave, lane}, {enter, lane}, {enter, end}, {to.x, end}}
}
