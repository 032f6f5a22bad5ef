import Foundation

exit(await FaultTable.main())
