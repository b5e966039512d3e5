package diagram

import "slices"

// Positions of boxes. A stage is a column, with its tables from top to bottom in the packets'
// order. The columns fill bands like lines of text, so that a map of 14 stages is 1280 wide and
// readable. Between the columns are gutters, and above the boxes of each band are lanes. Lines
// run only there, so that none crosses a box.

// Sizes, in pixels.
const (
	margin   = 8
	boxW     = 128
	boxH     = 44
	gapY     = 24 // between boxes, for arrows and marks
	gutterW  = 46
	pitch    = boxW + gutterW
	titleH   = 20
	laneStep = 9
	bandGap  = 22
	legendH  = 34
	perBand  = 7
	// unstaged is how many tables without a stage are in a column.
	unstaged = 5
)

// column is a stage.
type column struct {
	stage  string
	tables []int // of the map
}

// place is the position of a table: its column in the band, its row in the column, and the
// corner of its box.
type place struct {
	band, col, row int
	x, y           float64
}

// layout is the geometry of a map.
type layout struct {
	m      *Map
	index  map[uint8]int // of a table in the map
	bands  [][]column
	places []place // of the map's tables
	top    []float64
	lanes  []lanes // of each band
	tracks map[int][]track
	exits  map[exit]float64
	width  float64
	height float64
}

// newLayout places all tables, and routes all lines.
func newLayout(m *Map) *layout {
	l := &layout{m: m, index: map[uint8]int{}, places: make([]place, len(m.Tables)), tracks: map[int][]track{}, exits: map[exit]float64{}}
	for i := range m.Tables {
		l.index[m.Tables[i].ID] = i
	}
	l.columns()
	for b, band := range l.bands {
		for c, col := range band {
			for r, t := range col.tables {
				l.places[t] = place{band: b, col: c, row: r}
			}
		}
	}
	l.plan()
	l.heights()
	l.width = margin*2 + gutterW + pitch*float64(l.mostColumns())
	l.assignExits()
	return l
}

// columns puts tables into columns and columns into bands of about the same
// length.
func (l *layout) columns() {
	var all []column
	for i, t := range l.m.Tables {
		last := len(all) - 1
		if last >= 0 && all[last].stage == t.Stage && (t.Stage != "" || len(all[last].tables) < unstaged) {
			all[last].tables = append(all[last].tables, i)
			continue
		}
		all = append(all, column{t.Stage, []int{i}})
	}
	if len(all) == 0 {
		return
	}
	bands := (len(all) + perBand - 1) / perBand
	l.bands = slices.Collect(slices.Chunk(all, (len(all)+bands-1)/bands))
}

func (l *layout) mostColumns() int {
	most := 1
	for _, b := range l.bands {
		most = max(most, len(b))
	}
	return most
}

// heights sets the position of bands, after the number of their lanes is known.
func (l *layout) heights() {
	y := float64(margin)
	for b, band := range l.bands {
		l.top = append(l.top, y)
		rows := 0
		for _, col := range band {
			rows = max(rows, len(col.tables))
			for r, t := range col.tables {
				p := &l.places[t]
				p.x, p.y = columnX(p.col), l.boxTop(b)+float64(r)*(boxH+gapY)
			}
		}
		y = l.boxTop(b) + float64(rows)*(boxH+gapY) + bandGap
	}
	l.height = y + legendH
}

// boxTop is where the first boxes of a band begin, below its lanes.
func (l *layout) boxTop(band int) float64 {
	return l.top[band] + titleH + float64(len(l.lanes[band]))*laneStep + laneStep
}

// columnX is the left side of a column's boxes.
func columnX(col int) float64 { return margin + gutterW + float64(col)*pitch }
