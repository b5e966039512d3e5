// Package report is what a measurement found, and how it is written: as text, Markdown, JSON and
// plots, alone or beside an earlier run.
//
//	series.go             one side's figures, round by round
//	comparison.go         the figures of all sides beside each other
//	changes.go            a comparison beside that of another run
//	trend.go              the figures of several runs, one after the other
//	plot.go, plotgrid.go  figures as SVG
//	better.go             in which direction better lies, by unit
package report
