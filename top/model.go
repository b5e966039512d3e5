package top

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
)

// Options are the initial state of the screen.
type Options struct {
	From  Asker
	Title string // whose switch it is
	View  View
	Every time.Duration // between readings
	Now   func() time.Time
}

// Limits of the interval, for + and -.
const (
	fastest = 100 * time.Millisecond
	slowest = time.Minute
)

// Model is the screen. Update and View are functions of it and of messages only. The commands
// that Update returns ask the agent.
type Model struct {
	o             Options
	ctx           context.Context
	width, height int

	view     View
	was, now *Reading // was is nil until there are two readings of one view
	failed   string   // why the last reading failed
	question int      // number of the last request; answers to older ones are ignored

	by      [numViews]int // index of the sort column
	reverse [numViews]bool
	filter  string
	typing  bool // the filter
	offset  int  // first visible row
	paused  bool
	help    bool
}

// readMsg is a reading or an error; of is the number of its request.
type readMsg struct {
	reading *Reading
	err     error
	of      int
}

// tickMsg says that it is time for the next request after of.
type tickMsg struct{ of int }

// New makes a screen of 80 by 24, until a message changes its size.
func New(ctx context.Context, o Options) Model {
	return Model{o: o, ctx: ctx, width: 80, height: 24, view: o.View, by: sortedBy, question: 1}
}

// Run shows the screen on a terminal until the user ends it, or ctx ends.
func Run(ctx context.Context, o Options, more ...tea.ProgramOption) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_, err := tea.NewProgram(New(ctx, o), append([]tea.ProgramOption{tea.WithContext(ctx)}, more...)...).Run()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Init requests the first reading.
func (m Model) Init() tea.Cmd { return m.read() }

// read asks the agent, in a goroutine of bubbletea.
func (m Model) read() tea.Cmd {
	ctx, o, view, of := m.ctx, m.o, m.view, m.question
	return func() tea.Msg {
		r, err := Read(ctx, o.From, view, o.Now)
		return readMsg{r, err, of}
	}
}

// later asks again after the interval.
func (m Model) later() tea.Cmd {
	of := m.question
	return tea.Tick(m.o.Every, func(time.Time) tea.Msg { return tickMsg{of} })
}

// again asks at once. Answers to earlier requests are ignored.
func (m Model) again() (Model, tea.Cmd) {
	m.question++
	return m, m.read()
}

// Update handles a message, and returns the next command.
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case readMsg:
		return m.takeReading(msg)
	case tickMsg:
		if msg.of != m.question || m.paused {
			return m, nil
		}
		return m.again()
	case tea.KeyPressMsg:
		if m.typing {
			return m.typed(msg), nil
		}
		return m.press(msg.String())
	}
	return m, nil
}

// takeReading stores a reading. A failed one leaves the screen as it is.
func (m Model) takeReading(msg readMsg) (tea.Model, tea.Cmd) {
	if msg.of != m.question {
		return m, nil
	}
	if msg.err != nil {
		m.failed = msg.err.Error()
		return m, m.later()
	}
	m.failed = ""
	m.was, m.now = m.now, msg.reading
	return m, m.later()
}

// typed handles a key of the filter.
func (m Model) typed(k tea.KeyPressMsg) tea.Model {
	switch k.String() {
	case "enter":
		m.typing = false
	case "esc", "ctrl+c":
		m.typing, m.filter = false, ""
	case "backspace":
		if r := []rune(m.filter); len(r) > 0 {
			m.filter = string(r[:len(r)-1])
		}
	default:
		m.filter += k.Text
	}
	m.offset = 0
	return m
}

// press handles a key.
func (m Model) press(key string) (tea.Model, tea.Cmd) {
	switch key {
	case "q", "ctrl+c":
		return m, tea.Quit
	case "esc":
		m.help, m.filter = false, ""
	case "?", "h":
		m.help = !m.help
	case "/":
		m.typing = true
	case "space", "p":
		m.paused = !m.paused
		if !m.paused {
			return m.again()
		}
	case "s":
		m.by[m.view] = (m.by[m.view] + 1) % len(views[m.view].columns)
	case "r":
		m.reverse[m.view] = !m.reverse[m.view]
	case "+", "=":
		m.o.Every = max(fastest, m.o.Every/2)
	case "-":
		m.o.Every = min(slowest, m.o.Every*2)
	default:
		return m.move(key)
	}
	return m, nil
}

// move goes to another view, or to another row.
func (m Model) move(key string) (tea.Model, tea.Cmd) {
	page := max(1, m.room()-1)
	switch key {
	case "tab", "right", "l":
		return m.show((m.view + 1) % numViews)
	case "shift+tab", "left":
		return m.show((m.view + numViews - 1) % numViews)
	case "down", "j":
		m.offset++
	case "up", "k":
		m.offset--
	case "pgdown":
		m.offset += page
	case "pgup":
		m.offset -= page
	case "home", "g":
		m.offset = 0
	}
	if len(key) == 1 && key[0] >= '1' && key[0] < '1'+byte(numViews) {
		return m.show(View(key[0] - '1'))
	}
	m.offset = max(0, min(m.offset, len(m.rows())-1))
	return m, nil
}

// show goes to a view and requests its data.
func (m Model) show(v View) (tea.Model, tea.Cmd) {
	if v == m.view {
		return m, nil
	}
	m.view, m.offset = v, 0
	m.was, m.now = nil, nil
	return m.again()
}

// rows are the rows of the view, filtered and sorted.
func (m Model) rows() []row {
	if m.now == nil {
		return nil
	}
	var all []row
	for _, r := range views[m.view].rows(newRates(m.was, m.now)) {
		if r.matches(m.filter) {
			all = append(all, r)
		}
	}
	by := m.by[m.view]
	sortRows(all, by, views[m.view].columns[by].kind, m.reverse[m.view])
	return all
}

// furniture is how many lines are not rows: sums, views, the table's header, and the last line.
const furniture = 4

// room is how many rows fit.
func (m Model) room() int { return max(0, m.height-furniture) }

var (
	bold   = lipgloss.NewStyle().Bold(true)
	chosen = lipgloss.NewStyle().Reverse(true)
	bad    = lipgloss.NewStyle().Foreground(lipgloss.Red)
)

// View draws the screen.
func (m Model) View() tea.View {
	v := tea.NewView(m.draw())
	v.AltScreen = true
	return v
}

// draw makes the lines of the screen, as many as fit.
func (m Model) draw() string {
	lines := []string{bold.Render(cut(m.title(), m.width)), m.tabs()}
	if m.help {
		lines = append(lines, helpLines...)
	} else {
		lines = append(lines, m.table()...)
	}
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines[:max(0, m.height-1)], m.foot())
	return strings.Join(lines, "\n")
}

// title has the sums of all ports, and the title of the switch.
func (m Model) title() string {
	if m.now == nil {
		return m.o.Title
	}
	return m.now.At.Format(time.TimeOnly) + "  " + classCounters(newRates(m.was, m.now)) + "  " + m.o.Title
}

// classCounters are packets and bits of all ports: in, out and dropped.
func classCounters(r *rates) string {
	add := func(at *Reading) (n [5]uint64) {
		if at == nil {
			return n
		}
		for i := range at.Ports {
			p := &at.Ports[i]
			for j, v := range []uint64{p.Rx.Packets, 8 * p.Rx.Bytes, p.Tx.Packets, 8 * p.Tx.Bytes, droppedBy(p)} {
				n[j] += v
			}
		}
		return n
	}
	now, was := add(r.now), add(r.was)
	var t [5]string
	for i := range now {
		t[i] = r.per(now[i], was[i]).text
	}
	return fmt.Sprintf("in %s/s %sbit/s  out %s/s %sbit/s  drop %s/s", t[0], t[1], t[2], t[3], t[4])
}

func (m Model) tabs() string {
	var all []string
	width := 0
	for v := range numViews {
		name := fmt.Sprintf("%d %v", v+1, v)
		if width += len(name) + 2; width > m.width+2 {
			break
		}
		if v == m.view {
			name = chosen.Render(name)
		}
		all = append(all, name)
	}
	return strings.Join(all, "  ")
}

// table is the view's header and the rows that fit.
func (m Model) table() []string {
	rows, columns, by := m.rows(), views[m.view].columns, m.by[m.view]
	heads := header(columns, by, m.reverse[m.view])
	w := widths(columns, heads, rows, m.width)
	lines := []string{bold.Render(line(columns, heads, w, m.width))}
	if len(rows) == 0 {
		return append(lines, m.nothing())
	}
	for _, r := range rows[min(m.offset, len(rows)-1):] {
		if len(lines) > m.room() {
			break
		}
		lines = append(lines, line(columns, r.texts(), w, m.width))
	}
	return lines
}

// nothing says why there are no rows.
func (m Model) nothing() string {
	switch {
	case m.now == nil:
		return "waiting for the agent"
	case m.now.Note != "":
		return cut(m.now.Note, m.width)
	case m.filter != "":
		return "no row has " + m.filter
	}
	return "nothing"
}

// foot shows the state, and the key for help.
func (m Model) foot() string {
	switch {
	case m.typing:
		return cut("filter: "+m.filter+"_", m.width)
	case m.failed != "":
		return bad.Render(cut(strings.ReplaceAll(m.failed, "\n", " "), m.width))
	}
	parts := []string{"? help", "every " + m.o.Every.String()}
	if m.paused {
		parts = append(parts, "paused")
	}
	if m.filter != "" {
		parts = append(parts, "filter: "+m.filter)
	}
	if n := len(m.rows()); n > m.room() && !m.help {
		parts = append(parts, fmt.Sprintf("rows %d to %d of %d", m.offset+1, min(n, m.offset+m.room()), n))
	}
	return cut(strings.Join(parts, "   "), m.width)
}

// helpLines are the keys.
var helpLines = []string{
	"",
	"  1 … 7, tab, ← →    ports, workers, tables, rules, connections, drops, reasons",
	"  s, r               sort by the next column; the other way round",
	"  /                  only rows that have a text (enter keeps it, esc drops it)",
	"  ↑ ↓, page up/down  move; home: to the first row",
	"  + -                ask twice as often, half as often",
	"  space              stop asking, go on",
	"  ?                  this page; esc leaves it",
	"  q                  end",
	"",
	"  Rates are per second, over the time between the last two readings.",
}
