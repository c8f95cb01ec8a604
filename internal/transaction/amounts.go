package transaction

// Totals are a transaction's amounts in minor units, line by line, by the
// rules of [Calculate]. Σ line nets = Net; Net + Tax = Gross, always.
type Totals struct {
	Lines    []Line
	Gross    int64 // total_amount
	Net      int64 // total_net_amount
	Tax      int64 // total_tax_amount
	Withheld int64 // lowers what is payable, not the totals
}

// Payable is what the customer owes.
func (t Totals) Payable() int64 { return t.Gross - t.Withheld }

// Line is one item's amounts.
type Line struct {
	Gross int64 // as Net, after the discount
	Net   int64
	Taxes []int64 // one per tax entry of the item, withheld ones as positive amounts of what is withheld

	Discount    int64 // what the discount took, in the terms of the price and with the sign of the line
	NetDiscount int64 // the same without tax: net before the discount less Net
}
